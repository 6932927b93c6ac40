"""TensorFlow and Keras: this is ``daedal.tensorflow``. TensorFlow is imported when something needs it.

::

    model = keras.Model(…)
    exe = daedal.tensorflow.compile(model, device=device)
    scores = exe({"user": users, "item": items})
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from daedal.base.messages import shown
from daedal.compiler.bounds import check_bounds
from daedal.compiler.opt_levels import BEST, check_opt
from daedal.driver.device import Device
from daedal.errors import UnsupportedOperation
from daedal.system.system import check_device

if TYPE_CHECKING:
    from daedal.compiler.frontends.tensorflow.executable import TensorFlowExecutable
    from daedal.runtime.executable import Executable

INSTALL = "pip install 'daedal[tensorflow]'"
"""What installs the versions that Daedal is tested with."""

OLDEST = (2, 18)
"""The first release for NumPy 2, which Daedal needs; results are compared with those of the one in pyproject.toml."""


def compile(
    model: Any,
    input_signature: Sequence[Any] | None = None,
    *,
    device: Device,
    training: bool = False,
    bounds: str = "fatal",
    opt: int = BEST,
) -> "TensorFlowExecutable":
    """An executable of a model whose look-ups run on ``device``; all else runs in TensorFlow.

    Parameters
    ----------
    model
        A Keras model or layer, a ``tf.function``, one of its concrete functions, or any function of tensors.
    input_signature
        A ``tf.TensorSpec`` (or one of sparse or ragged tensors, or a dictionary, list or tuple of such) for each
        argument, as ``tf.function`` has it; sizes that change from call to call are None in it. It may be left out for
        a Keras model that was made of inputs, and for a function that has one.
    device
        The device to compile for and to run on.
    training
        What a Keras model is called with.
    bounds, opt
        As in ``daedal.compile``.

    Operations that run on the device are called together, those that need nothing of each other in one launch;
    ``explain()`` says which these are, and why others stay in TensorFlow. Results have the bits of TensorFlow's, but
    for subnormal numbers, which that takes for 0. A variable is read as it is in each call; training through the
    executable, by ``tf.GradientTape``, is training of the model.

    Raises UnsupportedOperation if TensorFlow is not there or too old, if there is nothing to run on the device, and for
    a model or signature that is none; ValueError for another ``bounds`` or ``opt``.
    """
    check_opt(opt)
    check_bounds(bounds)
    check_device(device)
    check_installed()
    from daedal.compiler.frontends.tensorflow.importer import compiled

    return compiled(model, input_signature, device, training, bounds, opt)


def load(
    saved_model: Path | str,
    *,
    device: Device,
    signature: str = "serving_default",
    bounds: str = "fatal",
    opt: int = BEST,
) -> "Executable":
    """An executable of a SavedModel, without TensorFlow: what runs on ``device`` is as with :func:`compile`, and NumPy
    computes the rest.

    Parameters
    ----------
    saved_model
        The folder that ``tf.saved_model.save``, or ``export`` of a Keras model, has written.
    device
        The device to compile for and to run on.
    signature
        Which of the model's signatures to run. The executable takes its inputs by name, or in a dictionary, as NumPy
        arrays, and gives a dictionary of its outputs.
    bounds, opt
        As in ``daedal.compile``.

    Look-ups and their sums have TensorFlow's bits; dense layers may have other last bits, as ``explain()`` says.

    Raises FileError for files that are not there, no SavedModel or damaged; UnsupportedOperation for a signature that
    the model has not, for operators that are not known without TensorFlow, and if there is nothing to run on the
    device; ValueError for another ``bounds`` or ``opt``.
    """
    check_opt(opt)
    check_bounds(bounds)
    check_device(device)
    if not isinstance(saved_model, str | Path):
        raise UnsupportedOperation(f"saved_model must be the path of a folder, not {shown(saved_model)}")
    from daedal.compiler.frontends.tensorflow.saved.load import loaded

    return loaded(Path(saved_model), signature, device, bounds, opt)


def check_installed() -> None:
    """Raise UnsupportedOperation if TensorFlow cannot be imported, or is one that does not work."""
    try:
        tensorflow = import_module("tensorflow")
    except ImportError as error:
        raise UnsupportedOperation(
            f"TensorFlow must be installed for this, and it cannot be imported ({error}): {INSTALL}"
        ) from error
    version = str(getattr(tensorflow, "__version__", "0.0"))
    numbers = tuple(int(part) if part.isdecimal() else 0 for part in version.split(".")[:2])
    if numbers < OLDEST:
        raise UnsupportedOperation(
            f"TensorFlow must be {'.'.join(map(str, OLDEST))} or later, the first for NumPy 2, not {version}: {INSTALL}"
        )
