"""DistributedOptimizer: any optimizer, with gradients reduced over all ranks during backward."""

from __future__ import annotations

import inspect
import types
import warnings
import weakref
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch

from kolo import _core
from kolo._basics import group_users
from kolo._errors import InvalidArgumentError, suggests
from kolo.process_sets import ProcessSet, global_process_set
from kolo.torch._gradients import Gradients, add_gradient_hook
from kolo.torch._lossy import LossyCompression, LossyReducer
from kolo.torch._shards import Shards
from kolo.torch.compression import BF16Compressor, Compression, FP16Compressor, NoneCompressor
from kolo.torch.mpi_ops import Adasum, Average, Sum, allreduce_async_, synchronize

_WIRE_TYPES = {
    NoneCompressor: None,
    FP16Compressor: torch.float16,
    BF16Compressor: torch.bfloat16,
}


def _named(
    optimizer: torch.optim.Optimizer, named_parameters: Any
) -> List[Tuple[str, torch.nn.Parameter]]:
    """All parameters of the optimizer that take gradients, with their names."""
    owned = [p for group in optimizer.param_groups for p in group["params"]]
    if named_parameters is None:
        return [
            (f"allreduce.noname.{g}.{i}", p)
            for g, group in enumerate(optimizer.param_groups)
            for i, p in enumerate(group["params"])
        ]
    pairs = list(named_parameters)
    if any(not isinstance(pair, tuple) or len(pair) != 2 for pair in pairs):
        raise InvalidArgumentError(
            "named_parameters should be a sequence of tuples (name, parameter), usually produced by "
            "model.named_parameters()"
        )
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgumentError(
            f"Parameter names in named_parameters must be unique. Found duplicates: {', '.join(twice)}"
        )
    known = {id(parameter): name for name, parameter in pairs}
    unnamed = [tuple(p.shape) for p in owned if id(p) not in known]
    if unnamed:
        raise InvalidArgumentError(
            "named_parameters was specified, but one or more model parameters were not named: "
            f"parameters of the shapes {unnamed}. All parameters of the optimizer must be listed"
        )
    return [(known[id(p)], p) for p in owned]


def _group_numbers(
    parameters: Sequence[torch.nn.Parameter], groups: Any, num_groups: int
) -> List[int]:
    """Which parameters share a bucket by the user's wish; -1: any."""
    numbers = [-1] * len(parameters)
    if num_groups:
        warnings.warn(
            "Parameter `num_groups` has been replaced by `groups`", DeprecationWarning, stacklevel=3
        )
        if groups is None:
            groups = num_groups
    if groups is None:
        return numbers
    if isinstance(groups, bool) or not isinstance(groups, (int, list, tuple)):
        raise InvalidArgumentError("groups should be a non-negative integer or a list of lists")
    if isinstance(groups, int):
        if groups < 0:
            raise InvalidArgumentError(f"groups should be a non-negative integer, not {groups}")
        count = len(parameters)
        return [i * groups // count for i in range(count)] if groups else numbers
    places = {id(p): i for i, p in enumerate(parameters)}
    for number, group in enumerate(groups):
        if not isinstance(group, (list, tuple)):
            raise InvalidArgumentError("groups should be a list of lists of tensors")
        for tensor in group:
            if not isinstance(tensor, torch.Tensor):
                raise InvalidArgumentError("groups should consist of tensors")
            if id(tensor) not in places:
                raise InvalidArgumentError("groups has a tensor that the optimizer does not have")
            if numbers[places[id(tensor)]] != -1:
                raise InvalidArgumentError("a tensor can only appear once in groups")
            numbers[places[id(tensor)]] = number
    return numbers


class _DistributedMixin:
    """What a wrapped optimizer has besides its own class."""

    def _kolo_init(self, named_parameters: Any, options: Dict[str, Any]) -> None:
        self._compression = options["compression"]
        self._process_set = options["process_set"]
        self.op = options["op"]
        self._sparse_as_dense = options["sparse_as_dense"]
        self.backward_passes_per_step = options["backward_passes_per_step"]
        factor = options["gradient_predivide_factor"]
        self._prescale, self._postscale = 1.0 / factor, factor
        pairs = [(n, p) for n, p in _named(self, named_parameters) if p.requires_grad]  # type: ignore[arg-type]
        self._names = [name for name, _ in pairs]
        self._parameters = [p for _, p in pairs]
        self._parameter_names = {p: name for name, p in pairs}
        self._passes_left = [self.backward_passes_per_step] * len(pairs)
        self._arrived = [False] * len(pairs)
        self._handles: Dict[int, Any] = {}
        self._synchronized = False
        self._should_synchronize = True
        self._hooks: List[Any] = []
        numbers = _group_numbers(self._parameters, options["groups"], options["num_groups"])
        self._gradients: Optional[Gradients] = None
        if self._compression in _WIRE_TYPES:
            self._gradients = Gradients(
                self._names,
                self._parameters,
                numbers,
                self.op,
                self._prescale,
                self._postscale,
                _WIRE_TYPES[self._compression],
                self._sparse_as_dense,
                self._process_set,
            )
        self._lossy: Optional[LossyReducer] = None
        self._shards: Optional[Shards] = None
        self._is_sharded = options["shard_optimizer_state"]
        self.enter_group()
        group_users.add(self)

    # --- the ranks of now ---

    def enter_group(self) -> None:
        """These ranks belong together from now on."""
        self._is_active = _core.size() > 1 and bool(self._process_set.included())
        if not self._is_active:
            return
        if self._is_sharded:
            self._shards = Shards(self._parameters, self._process_set)
        if isinstance(self._compression, LossyCompression):
            self._lossy = self._compression.reducer(
                self._names, self._parameters, self.op, self._process_set
            )
        for index, parameter in enumerate(self._parameters):
            self._hooks.append(add_gradient_hook(parameter, self._make_hook(index)))

    def leave_group(self) -> None:
        """What was reduced or was to be reduced among them is dropped."""
        for _, handle in self._hooks:
            handle.remove()
        self._hooks.clear()
        self._handles.clear()
        self._shards = self._lossy = None
        if self._gradients is not None:
            self._gradients.leave_group()
        self._begin_step()
        self._synchronized = False

    # --- backward ---

    def _make_hook(self, index: int) -> Callable[..., None]:
        passes_left = self._passes_left
        arrived = self._arrived
        # The optimizer ends when its last user drops it, on every rank at the same point of the
        # program: it must not wait for Python to find a cycle.
        owner = weakref.ref(self)

        def hook(*_: Any) -> None:
            self = owner()
            if self is None:
                return
            left = passes_left[index]
            if left == 0 or arrived[index]:
                raise AssertionError(
                    f"Gradients of {self._names[index]!r} were computed more than "
                    "backward_passes_per_step times before call to step(). Increase "
                    "backward_passes_per_step to accumulate gradients locally."
                )
            passes_left[index] = left - 1
            if left == 1:
                arrived[index] = True
                if self._gradients is not None:
                    self._gradients.arrived(index)
                elif self._lossy is None:
                    self._start_compressed(index)

        return hook

    def _start_compressed(self, index: int) -> None:
        """By a compressor of the user's own: one operation for each gradient."""
        parameter = self._parameters[index]
        grad = parameter.grad
        if grad is None:
            grad = parameter.grad = torch.zeros_like(parameter)
        if grad.is_sparse:
            grad = parameter.grad = grad.to_dense()
        compressed, context = self._compression.compress(grad)
        handle = allreduce_async_(
            compressed,
            name=f"gradient.{self._names[index]}",
            op=self.op,
            prescale_factor=self._prescale,
            postscale_factor=self._postscale,
            process_set=self._process_set,
        )
        self._handles[index] = (handle, context)

    # --- the end of a step ---

    def synchronize(self) -> None:
        """Waits until all gradients are reduced. Call it to use them before step()."""
        if not self._is_active:
            self._synchronized = True
            return
        try:
            if self._gradients is not None:
                self._gradients.finish(self._arrived)
            elif self._lossy is not None:
                self._lossy.reduce()
            else:
                self._finish_compressed()
        finally:
            self._begin_step()
        self._synchronized = True

    def _finish_compressed(self) -> None:
        for index, here in enumerate(self._arrived):
            if not here:
                self._start_compressed(index)
        handles, self._handles = self._handles, {}
        with torch.no_grad():
            for index, (handle, context) in sorted(handles.items()):
                reduced = self._compression.decompress(synchronize(handle), context)
                grad = self._parameters[index].grad
                if grad is None or grad.shape != reduced.shape:
                    self._parameters[index].grad = reduced
                else:
                    grad.copy_(reduced)

    def _begin_step(self) -> None:
        for index in range(len(self._passes_left)):
            self._passes_left[index] = self.backward_passes_per_step
            self._arrived[index] = False

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Steps inside do not synchronize: for a synchronize() of one's own before."""
        self._should_synchronize = False
        try:
            yield
        finally:
            self._should_synchronize = True

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Reduces the gradients, unless that was done, and steps. A closure is called first."""
        loss = None
        if closure is not None:
            # Its gradients have to be reduced before the step that uses them.
            with torch.enable_grad():
                loss = closure()
        if self._should_synchronize:
            if self._synchronized:
                warnings.warn(
                    "optimizer.step() called without optimizer.skip_synchronize() context after "
                    "optimizer.synchronize(). This can cause training slowdown. You may want to "
                    "consider using optimizer.skip_synchronize() context if you use "
                    "optimizer.synchronize() in your code.",
                    stacklevel=2,
                )
            self.synchronize()
        self._synchronized = False
        result = self._kolo_plain_step()
        return loss if closure is not None else result

    def _kolo_plain_step(self) -> Any:
        """The step of the optimizer itself, for the parameters that this rank updates."""
        if self._shards is not None:
            return self._shards.step(lambda: self._kolo_class.step(self))  # type: ignore
        return self._kolo_class.step(self)  # type: ignore[attr-defined]

    def zero_grad(self, *args: Any, **kwargs: Any) -> Any:
        """As the optimizer's own; not between backward and step."""
        if any(self._arrived):
            raise AssertionError(
                "optimizer.zero_grad() was called after loss.backward() but before optimizer.step() "
                "or optimizer.synchronize(). This is prohibited as it can cause a race condition."
            )
        self._synchronized = False
        plain = self._kolo_class.zero_grad  # type: ignore[attr-defined]
        result = plain(self, *args, **kwargs)
        given = inspect.signature(plain).bind(self, *args, **kwargs)
        given.apply_defaults()
        if not given.arguments.get("set_to_none"):
            # Parameters that are frozen for a while have zeros, too, as with Horovod: programs that
            # train two networks in turn look at them.
            for parameter in self._parameters:
                if parameter.grad is None and not parameter.requires_grad:
                    parameter.grad = torch.zeros_like(parameter)
        return result

    def set_backward_passes_per_step(self, passes: int) -> None:
        """So many backward passes are summed up before gradients are reduced."""
        _check_passes(passes)
        self.backward_passes_per_step = passes
        self._begin_step()

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """As the optimizer's own; gradients under way are dropped."""
        if self._is_active and any(self._arrived):
            self.synchronize()
        self._synchronized = False
        self._begin_step()
        return self._kolo_class.load_state_dict(self, *args, **kwargs)  # type: ignore[attr-defined]


class _AdasumMixin:
    """Each rank steps by itself, and the changes of the parameters are combined (Maleki et al.,
    "Scaling distributed training with adaptive summation", 2020)."""

    def _kolo_init(self, named_parameters: Any, options: Dict[str, Any]) -> None:
        pairs = _named(self, named_parameters)  # type: ignore[arg-type]
        self._compression = options["compression"]
        self.backward_passes_per_step = options["backward_passes_per_step"]
        self.op = Adasum
        self._pairs = [(n, p) for n, p in pairs if p.requires_grad]
        self._parameter_names = {p: name for name, p in pairs}

    def step(self, closure: Optional[Callable[[], Any]] = None) -> Any:
        """Steps, and combines the changes of all ranks."""
        if _core.size() == 1:
            return self._kolo_class.step(self, closure)  # type: ignore[attr-defined]
        starts = [p.detach().clone() for _, p in self._pairs]
        loss = self._kolo_class.step(self, closure)  # type: ignore[attr-defined]
        started = []
        with torch.no_grad():
            for (name, parameter), start in zip(self._pairs, starts):
                delta, context = self._compression.compress(parameter.detach() - start)
                handle = allreduce_async_(delta, name=f"delta.{name}", op=Adasum)
                started.append((parameter, start, handle, context))
            for parameter, start, handle, context in started:
                delta = self._compression.decompress(synchronize(handle), context)
                parameter.copy_(start + delta)
        return loss

    def synchronize(self) -> None:
        """Nothing: changes are combined in step()."""

    @contextmanager
    def skip_synchronize(self) -> Iterator[None]:
        """Not possible with Adasum."""
        raise AssertionError(
            "Skipping synchronization is not supported when using Adasum optimizer."
        )
        yield

    def _kolo_plain_step(self) -> Any:
        return self._kolo_class.step(self)  # type: ignore[attr-defined]

    def set_backward_passes_per_step(self, passes: int) -> None:
        """Of no effect: each rank steps by itself."""
        _check_passes(passes)
        self.backward_passes_per_step = passes


def _check_passes(passes: Any) -> None:
    if isinstance(passes, bool) or not isinstance(passes, int) or passes <= 0:
        raise InvalidArgumentError(f"backward_passes_per_step must be > 0, not {passes!r}")


@suggests
def DistributedOptimizer(
    optimizer: torch.optim.Optimizer,
    named_parameters: Any = None,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    op: int = Average,
    gradient_predivide_factor: float = 1.0,
    num_groups: int = 0,
    groups: Any = None,
    sparse_as_dense: bool = False,
    process_set: ProcessSet = global_process_set,
    shard_optimizer_state: bool = False,
) -> torch.optim.Optimizer:
    """An optimizer of the same class and with the same parameters and state as ``optimizer``, whose
    gradients are reduced over all ranks while backward runs. Collective.

    The options are Horovod's. ``gradient_predivide_factor`` also holds with ``groups``.
    ``compression`` may also be Compression.power_sgd(rank) or Compression.top_k(ratio).
    ``shard_optimizer_state``: each rank keeps the state of its share of the parameters alone (ZeRO
    stage 1); state_dict() is that of the rank then.
    """
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidArgumentError(
            f"DistributedOptimizer: {type(optimizer).__name__} is not an optimizer of torch"
        )
    if not _core.is_initialized():
        _core.rank()  # raises: init() first
    _check_passes(backward_passes_per_step)
    if op not in (Average, Sum, Adasum):
        raise InvalidArgumentError("DistributedOptimizer: op must be Average, Sum or Adasum")
    if gradient_predivide_factor != 1.0 and op != Average:
        raise InvalidArgumentError("gradient_predivide_factor not supported with op != Average")
    if gradient_predivide_factor == 0:
        raise InvalidArgumentError("gradient_predivide_factor must not be 0")
    if op == Adasum and process_set is not global_process_set:
        raise NotImplementedError("Adasum does not support non-global process sets yet.")
    is_lossy = isinstance(compression, LossyCompression)
    if not is_lossy and not hasattr(compression, "compress"):
        raise InvalidArgumentError(
            f"DistributedOptimizer: compression is {compression!r}; use Compression.fp16, for example"
        )
    if is_lossy and (op == Adasum or gradient_predivide_factor != 1.0 or groups or num_groups):
        raise InvalidArgumentError(
            "DistributedOptimizer: lossy compression goes neither with Adasum nor with groups or "
            "gradient_predivide_factor"
        )
    if shard_optimizer_state and (is_lossy or op == Adasum or optimizer.state):
        raise InvalidArgumentError(
            "DistributedOptimizer: shard_optimizer_state goes neither with lossy compression nor "
            "with Adasum, and the optimizer must not have a state yet"
        )
    if hasattr(optimizer, "_kolo_class"):
        raise InvalidArgumentError("DistributedOptimizer: the optimizer is wrapped already")
    base = optimizer.__class__
    mixin = _AdasumMixin if op == Adasum else _DistributedMixin
    body = {k: v for k, v in mixin.__dict__.items() if k not in ("__dict__", "__weakref__")}
    body["_kolo_class"] = base
    cls = types.new_class(
        base.__name__, (base,), exec_body=lambda namespace: namespace.update(body)
    )
    # Parameters, state and options are those of the optimizer itself, not copies of them.
    wrapped: Any = cls.__new__(cls)  # type: ignore[call-overload]
    wrapped.__dict__.update(optimizer.__dict__)
    wrapped._kolo_init(
        named_parameters,
        {
            "compression": compression,
            "backward_passes_per_step": backward_passes_per_step,
            "op": op,
            "gradient_predivide_factor": gradient_predivide_factor,
            "num_groups": num_groups,
            "groups": groups,
            "sparse_as_dense": sparse_as_dense,
            "process_set": process_set,
            "shard_optimizer_state": shard_optimizer_state,
        },
    )
    return wrapped
