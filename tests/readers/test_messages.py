"""Whole messages about files, as a user reads them: the file, the line, what stands there, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import matchbound as mb

TABLE = "id_a,id_b,score\nann,ann,0.9\nann,bob,0.2\n"
MESSAGES: dict[str, tuple[str | None, str, str]] = {
    "not a number": (None, TABLE + "bob,bob,high\n", "f, line 4: score is 'high', not a number"),
    "a missing score": (
        None,
        TABLE + "bob,bob,\n",
        "f, line 4: score is missing; count such comparisons as rejected with missing='reject', leave them out with "
        "missing='drop', or give them the score that the system would act on",
    ),
    "a column too few": (
        None,
        TABLE + "bob,bob\n",
        "f, line 4: 2 columns where the header has 3: 'bob,bob'. Correct or drop the line",
    ),
    "an empty label": (None, TABLE + ",bob,1\n", "f, line 4: id_a is empty; fill it in or drop the row"),
    "other columns": (
        None,
        "left,right,points\na,b,1\n",
        "f: the columns 'left', 'right', 'points' are not recognised: comparisons need id_a, id_b and score "
        "(instance_a and instance_b optional), embeddings need identity and embedding or feature_0, feature_1, …; "
        "rename the columns, give columns={'id_a': …}, or name the reader of the tool that wrote the file",
    ),
    "a contradiction": (
        None,
        "id_a,id_b,score,genuine\nann,bob,0.9,1\n",
        "f, line 2: genuine says genuine, and the identities ann and bob differ (1 such rows); correct the labels or "
        "the identities. If these identities are names of images, give columns={'instance_a': …, 'instance_b': …}; "
        "if genuine means something else, give columns={'genuine': None}",
    ),
    "a trial without scores": (
        "kaldi",
        "a b target\n",
        "f is a trial list without scores; give read([trials, scores], reader='kaldi')",
    ),
    "a trial with a word too many": (
        "kaldi",
        "a b 0.5 target\na b c 0.1 nontarget\n",
        "f, line 2: 5 columns where 4 are expected: 'a b c 0.1 nontarget'. A line should be: instance_a instance_b "
        "score genuine",
    ),
    "labels that contradict": (
        "kaldi",
        "a b 1 target\nb c 1 target\na c 0 nontarget\n",
        "f, line 3: the labels contradict each other: a and c are labelled impostor, and genuine pairs join them to "
        "one identity (1 such pairs). Correct the labels, or give the identities",
    ),
    "predictions without labels": (
        None,
        "match_weight,unique_id_l,unique_id_r\n1,a,b\n",
        "f holds no labels; give read([predictions, labels], reader='splink'): labels have unique_id_l, unique_id_r "
        "and clerical_match_score, or unique_id and cluster (unique_id=… and truth=… name such columns otherwise)",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_whole_messages(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, content, message = MESSAGES[name]
    monkeypatch.chdir(tmp_path)
    Path("f").write_text(content)
    with pytest.raises(mb.DataError) as caught:
        mb.read("f", reader=reader)
    assert str(caught.value) == message
