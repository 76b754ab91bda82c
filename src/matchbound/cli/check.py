"""``matchbound check``: what the data are, and what they can support."""

from __future__ import annotations

from matchbound.cli import common
from matchbound.cli.common import Distance, Files, FormatOption, Output, Quiet, Reader, ReaderOption, Similarity


def check(
    *files: Files,
    distance: Distance = False,
    similarity: Similarity = "cosine",
    reader: Reader = None,
    option: ReaderOption = None,
    format: FormatOption = "table",
    output: Output = None,
    quiet: Quiet = False,
) -> int:
    """Read the data, describe them, and say what stands in the way of a good answer.

    Example: `matchbound check scores.csv`
    """
    from matchbound.results.description import describe
    from matchbound.show.description import description_records, description_text

    with common.listening(quiet) as told:
        data = common.load(files, reader=reader, distance=distance, similarity=similarity, option=option)
        description = describe(data)
    told.texts.extend(text for text in description.findings if text not in told.texts)
    source = common.provenance(files, None, {"verb": "check", "reader": reader})
    text = description_text(description, colour=common.colour_wanted(output)) if format == "table" else ""
    common.deliver(format, output, description_records(description), text, told.texts, source)
    return 0
