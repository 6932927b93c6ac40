"""What ``daedal.tensorflow.compile`` gives; imports TensorFlow."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from daedal.compiler.frontends.tensorflow.program import Program
from daedal.driver.device import Device
from daedal.errors import IndexOutOfRange, InvalidOffsets
from daedal.runtime.executable import Compile, Executable
from daedal.runtime.futures import Submitted, wait_for


class TensorFlowExecutable(Executable):
    """A model of TensorFlow's for one device: call it with the model's inputs.

    It may be called inside of a ``tf.function`` too, which then has the launches in its graph. Gradients go through it
    as through the model.
    """

    def __init__(self, program: Program, device: Device, compile: Compile, bounds: str, opt: int) -> None:
        super().__init__(program, device, compile, bounds, opt)
        self._host = program
        self._launched = [[call.name for call in launch] for launch in program.launches]

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The model's result for these inputs, by position or by name as the model takes them.

        Raises what ``Executable`` raises; in a graph that is what TensorFlow makes of it (InvalidArgumentError).
        """
        if tf.executing_eagerly():
            return super().__call__(*inputs, **named)
        return self._host.run_with(self._host.by_position(inputs, named), self._in_graph)

    def _in_graph(self, number: int, tensors: Sequence[Any]) -> list[Any]:
        """A launch as an operator of the graph that is being traced."""
        calls = self._host.launches[number]
        types = [sources[0].dtype for sources in self._host.sources(number, tensors)]

        def launch(*values: Any) -> list[Any]:
            try:
                return self._launch_now(number, values)
            except (IndexOutOfRange, InvalidOffsets) as error:
                raise ValueError(str(error)) from error  # TensorFlow makes an InvalidArgumentError of it

        results = tf.py_function(launch, list(tensors), types)
        for call, result in zip(calls, results, strict=True):
            result.set_shape(call.shape)
        return list(results)

    def _launch_now(self, number: int, tensors: Sequence[Any]) -> list[Any]:
        with self.device.turn:
            _ = self.device.target
            wait_for(self.device)
            self._last = submitted = Submitted(self.device.finish)
            return self._host.hand_over(number, tensors, self._work(submitted, at_once=True))
