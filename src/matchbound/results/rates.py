"""Error rates at fixed thresholds: estimates, variances, and intervals as methods."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from matchbound.arraytypes import FloatArray, IntArray
from matchbound.counting.recount import Recount
from matchbound.counts.tally import AllPairs, PairTable, Tally
from matchbound.errors import DataError, MatchboundWarning, UsageError
from matchbound.notes import Note
from matchbound.results import bootstraps
from matchbound.results.bootstraps import Bootstrap, Correction, Units, image_pairs, overstated, scheme_of
from matchbound.results.claims import Claimable
from matchbound.results.interval import Interval, Side, check_whole, named, one_side, tail_of
from matchbound.show.numbers import count_text, percent, threshold_text
from matchbound.stats import fixed_sizes, resampling, variance
from matchbound.stats.images import image_replicates
from matchbound.stats.intervals import agresti_coull, careful_wilson, effective_n, jeffreys, wald, wilson
from matchbound.stats.resampling import BOOTSTRAPS, Swap, Weights

if TYPE_CHECKING:
    from matchbound.results.erring import Erring
    from matchbound.show.tables import Table
    from matchbound.stats.latent import LatentModel, LatentSettings

Metric = Literal["far", "frr"]
VARIANCES = ("plug-in", "jackknife", "bias-corrected", "fixed-sizes")
METHODS = ("auto", "latent", "wilson", "wald", "agresti-coull", "jeffreys", "naive-wilson", *BOOTSTRAPS)

WARNED = ("strong-correlation",)
"""Notes of an interval that are also warnings."""

ADVISED_AGAINST = {
    "naive-wilson": (
        Note(
            "advised-against",
            "naive-wilson treats comparisons that share a person as independent: its intervals can be several times "
            "too narrow (Fogliato, Patil & Perona 2024, R2). Use method='auto'",
        )
    ),
    **bootstraps.ADVISED_AGAINST,
}


@dataclass(frozen=True, eq=False, repr=False)
class Rate(Claimable):
    """FAR or FRR at one threshold.

    metric
        ``"far"``: impostor comparisons that matched; ``"frr"``: genuine comparisons that did not.
    threshold
        The decision threshold, in the units of the scores.

    See Also
    --------
    evaluate, Interval, Bootstrap

    Examples
    --------
    >>> import matchbound as mb
    >>> far = mb.evaluate(mb.demo_data(), 0.6).far
    >>> far.errors, far.comparisons
    (189, 201532)
    >>> far.estimate == far.errors / far.comparisons
    True
    """

    metric: Metric
    threshold: float
    tally: Tally
    index: int
    recount: Recount | None = None
    methods: ClassVar[tuple[str, ...]] = METHODS

    def __repr__(self) -> str:
        return f"Rate({self.metric}={self.estimate:.6g}, {self.errors}/{self.comparisons} at {self.threshold:g})"

    def __str__(self) -> str:
        counts = f"{count_text(self.errors)} of {count_text(self.comparisons)}"
        return (
            f"{self.metric.upper()} {percent(self.estimate)} ({counts} at threshold {threshold_text(self.threshold)})"
        )

    def to_records(self) -> list[dict[str, Any]]:
        """The rate with its default interval."""
        from matchbound.show.records import rate_record

        return [rate_record(self, self.interval() if self.comparisons else None)]

    def _tables(self) -> list[Table]:
        from matchbound.show.text import rates_tables

        return rates_tables(self.to_records())

    @cached_property
    def errors(self) -> int:
        """How many comparisons erred."""
        if self.metric == "far":
            return int(self.tally.impostor.errors[self.index].sum()) // 2
        return int(self.tally.genuine.errors[self.index].sum())

    @cached_property
    def comparisons(self) -> int:
        """How many comparisons there were: N for FAR, T for FRR."""
        if self.metric == "far":
            return int(self.tally.impostor.comparisons.sum()) // 2
        return int(self.tally.genuine.comparisons.sum())

    @property
    def weighting(self) -> str:
        """``"comparisons"``: every comparison counts once."""
        return "comparisons"

    @property
    def units(self) -> int:
        """What the rate is a mean of: the comparisons."""
        return self.comparisons

    @property
    def units_erred(self) -> float:
        """Units that erred: the errors."""
        return float(self.errors)

    @property
    def one_error(self) -> float:
        """What one more error moves the rate by, on average over the units."""
        return 1.0 / self.comparisons

    @property
    def estimate(self) -> float:
        """errors / comparisons; NaN without comparisons."""
        return self.errors / self.comparisons if self.comparisons else float("nan")

    @cached_property
    def n_identities(self) -> int:
        """Identities that take part in these comparisons."""
        part = self.tally.impostor if self.metric == "far" else self.tally.genuine
        return int(np.count_nonzero(part.comparisons))

    @cached_property
    def variance(self) -> float:
        """The paper's plug-in variance. It can be negative in small samples; NaN without comparisons."""
        return self.variance_by("plug-in") if self.comparisons else float("nan")

    def variance_by(self, kind: str = "plug-in") -> float:
        """Variance of the estimate by another estimator.

        Parameters
        ----------
        kind
            ``"plug-in"``; ``"jackknife"`` (delete one identity); ``"bias-corrected"`` (the plug-in is too low by a
            known factor); ``"fixed-sizes"`` (given the number of instances of each identity).
        """
        self._must_have_comparisons()
        kind = named(kind, VARIANCES, "kind")
        far = self.metric == "far"
        if kind == "plug-in":
            return (
                variance.far_plug_in(self.tally.impostor, self.index)
                if far
                else variance.frr_plug_in(self.tally.genuine, self.index)
            )
        if kind == "jackknife":
            value = (
                variance.far_jackknife(self.tally.impostor, self.index)
                if far
                else variance.frr_jackknife(self.tally.genuine, self.index)
            )
            if np.isnan(value):
                raise DataError(
                    f"{self.metric}: one identity takes part in every comparison; nothing is left without it"
                )
            return value
        if kind == "bias-corrected":
            factor = variance.far_bias_factor if far else variance.frr_bias_factor
            corrected = factor(self.effective_identities)
            if not np.isfinite(corrected):
                raise DataError(
                    f"{self.metric}: the bias correction needs more than {3 if far else 1} effective identities; "
                    f"there are {self.effective_identities:.3g}"
                )
            return corrected * self.variance
        if far:
            value = fixed_sizes.far_fixed_sizes(self._with_pairs.impostor, self.index, self._sizes())
        else:
            value = fixed_sizes.frr_fixed_sizes(self.tally.genuine, self.index)
        if np.isnan(value):
            least = fixed_sizes.LEAST_FAR if far else fixed_sizes.LEAST_FRR
            raise DataError(f"{self.metric}: a variance given the sizes needs at least {least} identities")
        return value

    @cached_property
    def effective_identities(self) -> float:
        """How many equally large identities would weigh as much: (ΣM)²/ΣM² for FAR, T²/Σg² for FRR.

        Where instances are unknown, FAR's identities are weighed by their comparisons.
        """
        if self.metric == "frr":
            return variance.effective_identities(self.tally.genuine.comparisons)
        sizes = self.tally.instances
        if sizes is None:
            return variance.effective_identities(self.tally.impostor.comparisons)
        return variance.effective_identities(np.where(self.tally.impostor.comparisons > 0, sizes, 0))

    @property
    def floor(self) -> int:
        """Least effective number of trials (the paper, below eq. 5): ⌊G/2⌋ pairs for FAR, identities for FRR."""
        return self.n_identities // 2 if self.metric == "far" else self.n_identities

    @property
    def effective_n(self) -> float:
        """N*: how many independent comparisons would be as informative; NaN without comparisons."""
        if not self.comparisons:
            return float("nan")
        return effective_n(self.estimate, self.variance, self.floor)

    @property
    def design_effect(self) -> float:
        """The design effect: comparisons divided by the effective sample size, `effective_n`."""
        return self.comparisons / self.effective_n if self.comparisons else float("nan")

    def interval(
        self,
        method: str = "auto",
        level: float = 0.95,
        *,
        side: Side = "two-sided",
        variance: str | None = None,
        n_resamples: int = 2000,
        rng: int | np.random.Generator | None = None,
        **options: Any,
    ) -> Interval:
        """A confidence interval for the rate.

        Parameters
        ----------
        method
            ``"auto"``: ``"latent"`` wherever the model can be fitted, else Wilson with bias-corrected variance,
            Student's t and an effective number of comparisons of at most N; the result's `method` and `notes` say which
            and why. ``"latent"``: the latent-correlation model. ``"wilson"``: the paper's recommendation. ``"wald"``,
            ``"agresti-coull"``, ``"jeffreys"``, ``"naive-wilson"``, or a bootstrap: ``"vertex"``,
            ``"double-or-nothing"``, ``"subsets"``, ``"two-level"``, ``"naive-bootstrap"``.
        level
            The confidence level.
        side
            ``"two-sided"``, or ``"upper"`` / ``"lower"`` for a one-sided bound at the same level.
        variance
            For Wilson and Wald: ``"plug-in"`` (the default), ``"jackknife"``, ``"bias-corrected"``, ``"fixed-sizes"``,
            or the name of a bootstrap whose replicates' variance is to be used. With ``"auto"`` it asks for Wilson.
        n_resamples, rng, options
            For bootstraps; see `bootstrap`.

        Notes
        -----
        An interval of width zero is never right. Where a bootstrap gives one (no errors), the interval of ``"auto"``
        takes its place, and a note says so. Wald's is left as the formula gives it, with a warning that names the
        interval of ``"auto"``.
        """
        self._must_have_comparisons()
        tail = tail_of(level, side)
        told = "method" if self.methods is METHODS else f"method with weighting={self.weighting!r}"
        method = named(method, self.methods, told)
        if method == "auto" and variance is not None:
            method = "wilson"
        if method == "auto":
            return self._auto_interval(level, side, options)
        if method == "latent":
            return self._latent_interval(level, side, options)
        if method in ADVISED_AGAINST:
            warnings.warn(ADVISED_AGAINST[method], MatchboundWarning, stacklevel=2)
        notes: tuple[Note, ...] = ()
        if method == "naive-wilson":
            low, high = wilson(self.estimate, self.comparisons, tail)
        elif method in ("wilson", "wald", "agresti-coull", "jeffreys"):
            spread = self._spread(variance or "plug-in", n_resamples, rng, options)
            if method == "wald":
                low, high = wald(self.estimate, spread, tail)
            else:
                rule = {"wilson": wilson, "agresti-coull": agresti_coull, "jeffreys": jeffreys}[method]
                low, high = rule(self.estimate, effective_n(self.estimate, spread, self.floor), tail)
        else:
            drawn = self._bootstrap(method, n_resamples, rng, options)
            made = drawn.interval(1.0 - 2.0 * tail) if tail < 0.5 else drawn.interval(level, side=side)
            low, high, notes = made.low, made.high, made.notes
        if low >= high and method == "wald":
            right = self._auto_interval(level, side, {})
            bound = f"{right.method}: {percent(right.low)} to {percent(right.high)}"
            notes = (Note("no-width", f"{self._no_width(method)}; the default interval is right ({bound})"),)
        elif low >= high:
            return self._instead(method, level, side)
        for note in notes:
            warnings.warn(note, MatchboundWarning, stacklevel=2)
        return Interval(*one_side(low, high, side), level, method, side, notes)

    def bootstrap(
        self,
        method: str = "vertex",
        n_resamples: int = 2000,
        rng: int | np.random.Generator | None = None,
        *,
        swap: Swap = "rate",
        weights: Weights | None = None,
        tau: float = 1.0,
        fixed_sizes: bool = False,
        correction: Correction = "none",
        units: Units = "identities",
        workers: int = 1,
    ) -> Bootstrap:
        """Resample identities and keep the replicates: they give intervals of any level afterwards.

        Parameters
        ----------
        method
            ``"vertex"``, ``"double-or-nothing"``, ``"subsets"``, ``"two-level"`` or ``"naive-bootstrap"``.
        n_resamples
            How many replicates.
        rng
            Seed or generator; the same seed gives the same replicates on any number of workers.
        swap
            Vertex: what stands for comparisons of an identity with its own copies: ``"rate"`` (the paper's),
            ``"random"`` (Snijders & Borgatti's) or ``"recentre"`` (Conti & Clémençon's).
        weights, tau
            Double-or-nothing: a function ``weights(rng, shape)`` that draws weights of mean 1 and variance `tau`;
            without it, weights are 0 or 1 + tau.
        fixed_sizes
            Exchange identities only for identities with as many instances; sizes that few identities have are pooled
            with their neighbours.
        correction
            Replicates vary too little, by (G−1)/G where FRR is drawn (the paper's Prop. 4). ``"drop-one"`` draws G−1
            identities; ``"rescale"`` moves replicates away from the estimate by √(G/(G−1)).
        units
            With ``swap="recentre"``: ``"images"`` draws the images of each identity instead of identities, as Conti &
            Clémençon do. Such an interval holds for these identities only.
        workers
            Threads.
        """
        self._must_have_comparisons()
        method = named(method, BOOTSTRAPS)
        if method in ADVISED_AGAINST:
            warnings.warn(ADVISED_AGAINST[method], MatchboundWarning, stacklevel=2)
        options = {
            "swap": swap,
            "weights": weights,
            "tau": tau,
            "fixed_sizes": fixed_sizes,
            "correction": correction,
            "units": units,
            "workers": workers,
        }
        return self._bootstrap(method, n_resamples, rng, options)

    def erring(self, most: int = 10_000) -> Erring:
        """The comparisons that erred, worst first, with identities and instances: look here for wrong labels.

        Parameters
        ----------
        most
            How many, the worst first.

        Returns
        -------
        Erring
            With arrays of identities, instances and scores; ``to_frame()`` makes a table of it.

        Examples
        --------
        >>> import matchbound as mb
        >>> worst = mb.evaluate(mb.demo_data(), threshold=0.6).far.erring(most=3)
        >>> len(worst), worst.errors
        (3, 189)
        """
        from matchbound.counting.erring import erring_rows
        from matchbound.results.erring import erring_of

        check_whole(most, "most")
        if self.recount is None:
            raise DataError("the comparisons themselves are not available, only their counts")
        found = erring_rows(self.recount, self.threshold, self.metric, self.errors, int(most))
        return erring_of(self.recount.source, self.metric, self.threshold, self.errors, found)  # type: ignore[arg-type]

    def latent_model(self, settings: str | LatentSettings = "default") -> LatentModel:
        """The latent model fitted to these comparisons, for its correlation curves and further limits.

        ``settings="reference"`` gives the constants as first published; see docs/explanation/latent.md.

        Parameters
        ----------
        settings
            ``"default"``, ``"guarded"``, ``"reference"``, ``"light"``, or `LatentSettings`.
        """
        from matchbound.results import latent

        self._must_have_comparisons()
        if self.recount is None:
            raise DataError("the latent model counts errors at other thresholds too, and the data are not available")
        return latent.fit(self.metric, self.tally, self.errors, self.recount, settings)

    @cached_property
    def _no_latent(self) -> Note | None:
        """Why the latent model cannot be fitted, or None where it can."""
        from matchbound.results import latent

        return latent.why_not(self.metric, self.tally, self.errors, self.recount)

    def _auto_interval(self, level: float, side: Side, options: dict[str, Any]) -> Interval:
        if self._no_latent is None:
            return self._latent_interval(level, side, options)
        if set(options) - {"settings"}:
            raise UsageError(f"unknown option {sorted(options)[0]!r} for method 'auto'")
        identities = self.effective_identities
        factor = variance.far_bias_factor(identities) if self.metric == "far" else variance.frr_bias_factor(identities)
        spread = self.variance * factor if np.isfinite(factor) else 0.0
        low, high = careful_wilson(
            self.estimate, spread, self.floor, self.units, tail_of(level, side), identities - 1.0
        )
        told = Note("wilson", "Wilson's interval with bias-corrected variance and Student's t")
        return Interval(*one_side(low, high, side), level, "wilson", side, (self._no_latent, told))

    def _instead(self, method: str, level: float, side: Side) -> Interval:
        """The default interval where a method gives one without width."""
        made = self._auto_interval(level, side, {})
        note = Note("no-width", f"{self._no_width(method)}; this is the default interval ({made.method})")
        return replace(made, notes=(note, *made.notes))

    def _no_width(self, method: str) -> str:
        """Why a method gives an interval without width."""
        why = "no comparison erred" if self.errors == 0 else "every comparison erred"
        if 0 < self.errors < self.comparisons:
            why = "its variance is not positive"
        return f"{method} has no width here ({why})"

    def _latent_interval(self, level: float, side: Side, options: dict[str, Any]) -> Interval:
        from matchbound.results import latent

        options = dict(options)
        settings = options.pop("settings", "default")
        if options:
            raise UsageError(f"unknown option {sorted(options)[0]!r} for method 'latent'")
        made = latent.interval(self.latent_model(settings), self.units_erred, level, side)
        for note in made.notes:
            if note.code in WARNED:
                warnings.warn(note.about(self.metric.upper()), MatchboundWarning, stacklevel=4)
        return made

    def _bootstrap(
        self, method: str, n_resamples: int, rng: int | np.random.Generator | None, options: dict[str, Any]
    ) -> Bootstrap:
        options = dict(options)
        workers = int(options.pop("workers", 1))
        scheme = scheme_of(method, n_resamples, options, self._sizes, self.tally.n_identities)
        seed = resampling.seed_of(rng)
        if scheme.images:
            if self.recount is None:
                raise DataError("drawing images needs the single comparisons, and the data are not available")
            pairs = image_pairs(self.recount.comparisons(), self.tally, self.metric, self.threshold)
            made = image_replicates(pairs, n_resamples, seed)
            return Bootstrap(made, self.estimate, f"{method} (images)", seed, 1.0, self.floor)
        if self.metric == "frr":
            made = resampling.frr_replicates(self.tally.genuine, self.index, scheme, n_resamples, seed, workers=workers)
        else:
            tally = self._with_pairs if method in ("vertex", "double-or-nothing") else self.tally
            if method in ("vertex", "double-or-nothing"):
                told = overstated(tally.impostor, self.index, method)
                if told is not None:
                    warnings.warn(told, MatchboundWarning, stacklevel=3)
            made = resampling.far_replicates(
                tally.impostor,
                self.index,
                scheme,
                n_resamples,
                seed,
                self_comparisons=self._self_comparisons(tally) if method == "vertex" else None,
                workers=workers,
            )
        return Bootstrap(made, self.estimate, method, seed, scheme.tau, self.floor)

    def _spread(
        self, kind: str, n_resamples: int, rng: int | np.random.Generator | None, options: dict[str, Any]
    ) -> float:
        kind = named(kind, (*VARIANCES, *BOOTSTRAPS), "variance")
        if kind in BOOTSTRAPS:
            if kind in ADVISED_AGAINST:
                warnings.warn(ADVISED_AGAINST[kind], MatchboundWarning, stacklevel=3)
            return self._bootstrap(kind, n_resamples, rng, options).variance
        if options:
            raise UsageError(f"unknown option {sorted(options)[0]!r}")
        return self.variance if kind == "plug-in" else self.variance_by(kind)

    def _must_have_comparisons(self) -> None:
        if self.comparisons == 0:
            kind = "impostor comparisons (of two different identities)"
            if self.metric == "frr":
                kind = "genuine comparisons (of two instances of one identity)"
            raise DataError(f"the data hold no {kind}, so {self.metric.upper()} is not defined")

    @cached_property
    def _with_pairs(self) -> Tally:
        """This tally, or the same comparisons counted again once, with n_ij kept at every threshold."""
        if self.tally.has_pairs:
            return self.tally
        if self.recount is None:
            raise DataError("this needs the errors of each identity pair, which were not kept; tally with pairs=True")
        return self.recount.tally(self.tally.thresholds, pairs=True)

    def _sizes(self) -> IntArray:
        """M_i; from genuine comparisons where instances are not named."""
        if self.tally.instances is not None:
            return self.tally.instances
        sizes = (1.0 + np.sqrt(1.0 + 8.0 * self.tally.genuine.comparisons)) / 2.0
        return np.asarray(sizes.round(), dtype=np.int64)

    def _self_comparisons(self, tally: Tally) -> FloatArray:
        """Comparisons that two copies of an identity stand for: M_i² in complete data, fewer where fewer were made."""
        compared = tally.impostor.compared
        if isinstance(compared, AllPairs):
            return compared.instances.astype(np.float64) ** 2
        assert isinstance(compared, PairTable)
        sizes = self._sizes().astype(np.float64)
        complete = sizes[compared.first] * sizes[compared.second]
        expected_pairs = self.n_identities * (self.n_identities - 1) // 2
        if compared.first.size == expected_pairs and np.array_equal(complete, compared.count):
            return sizes**2
        return np.minimum(sizes**2, resampling.configuration(tally.impostor.comparisons.astype(np.float64)))
