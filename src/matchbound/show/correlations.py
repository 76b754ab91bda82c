"""A picture of the latent model: how correlated errors are, by rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from matchbound.show.plots import BLUE, ORANGE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from matchbound.stats.latent import LatentModel


def plot_correlations(model: LatentModel, *, ax: Axes | None = None) -> Axes:
    """Latent correlations over the error rate: dots as estimated at each threshold, lines as the interval uses them.

    Parameters
    ----------
    model
        From ``rates.far.latent_model()`` or ``rates.frr.latent_model()``.
    ax
        Axes to draw on; by default new ones.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.

    See Also
    --------
    LatentInterval

    Examples
    --------
    >>> import matchbound as mb
    >>> model = mb.evaluate(mb.demo_data(), 0.6).far.latent_model()
    >>> axes = mb.plot_correlations(model)
    >>> axes.get_xlabel()
    'false accept rate'
    """
    from scipy.special import ndtr

    if ax is None:
        ax = new_axes()
    sign = -1.0 if model.mirrored else 1.0
    far = model.metric == "far"
    shown = [(model.pair, ORANGE, "same identity pair" if far else "same identity")]
    if far:
        shown.append((model.identity, BLUE, "one identity in common"))
    for curve, color, label in shown:
        z = np.linspace(curve.z.min(), curve.z.max(), 200) if curve.z.size else np.linspace(-3.0, 0.0, 2)
        trusted = curve.weight / max(float(curve.weight.max(initial=0.0)), 1e-300)
        ax.scatter(
            ndtr(sign * curve.z), np.clip(curve.value, 0.0, 1.0), s=3.0 + 12.0 * trusted, color=color, alpha=0.4, lw=0
        )
        ax.plot(ndtr(sign * z), curve(z), color=color, lw=1.6, label=label)
    if not model.mirrored:
        ax.set_xscale("log")
    ax.set_ylim(0.0, 1.0)
    ax.set_xlabel("false accept rate" if far else "false reject rate", fontsize=8)
    ax.set_ylabel("latent correlation of errors", fontsize=8)
    ax.tick_params(labelsize=8)
    ax.legend(fontsize=7, frameon=False)
    return ax
