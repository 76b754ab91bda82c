"""Honest error bars for matching systems.

A face, voice, fingerprint or record matcher says "same" or "different" about two items. Its false accept rate (FAR) and
false reject rate (FRR) come from comparisons that share people, so they are dependent, and the rates are tiny, so
normal approximations fail. matchbound gives intervals that account for both.

>>> import matchbound as mb
>>> rates = mb.evaluate(mb.demo_data(), threshold=0.6)
>>> low, high = rates.far.interval()
"""

from matchbound.lazy import exported

# Names that people look for here, and what they are called.
_HINTS = {
    "auc": "use mb.roc(data).auc()",
    "bootstrap": "use mb.evaluate(data, threshold).far.bootstrap()",
    "cllr": "use mb.roc(data).cllr()",
    "cmc": "use mb.search(gallery, probes).cmc(rank=1)",
    "confidence_interval": "use mb.evaluate(data, threshold).far.interval()",
    "det": "use mb.roc(data).plot(kind='det')",
    "det_curve": "use mb.roc(data)",
    "eer": "use mb.roc(data).eer()",
    "far": "use mb.evaluate(data, threshold).far",
    "fmr": "use mb.evaluate(data, threshold).fmr",
    "fnmr": "use mb.evaluate(data, threshold).fnmr",
    "fpir": "use mb.search(gallery, probes).fpir(threshold)",
    "frr": "use mb.evaluate(data, threshold).frr",
    "groups": "use mb.by_group(data, threshold)",
    "identify": "use mb.search(gallery, probes)",
    "load": "use mb.read(file)",
    "min_dcf": "use mb.roc(data).min_dcf(prior)",
    "report": "use mb.write_report(path, data)",
    "roc_curve": "use mb.roc(data)",
    "wilson": "use mb.evaluate(data, threshold).far.interval(method='wilson')",
}

_CLASSES = "result classes are in matchbound.results"

__all__, __getattr__ = exported(__name__, lambda name: _HINTS.get(name) or (_CLASSES if name[:1].isupper() else None))


def __dir__() -> list[str]:
    return __all__
