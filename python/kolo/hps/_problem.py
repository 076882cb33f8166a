"""HpProblem: what may vary. The names and rules are DeepHyper's."""

from __future__ import annotations

import json
import math
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from kolo import _core
from kolo._errors import AlreadyExistsError, InvalidArgumentError, unknown_name
from kolo.hps import _configspace
from kolo.tune.sample import Domain


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _domain(value: Any, name: str) -> Any:
    """What add_hyperparameter was given, as a leaf of a space."""
    if isinstance(value, Domain):
        return value
    if _configspace.is_hyperparameter(value):
        return _configspace.domain_of(value)
    if isinstance(value, dict):
        allowed = {"mu", "sigma", "lower", "upper"}
        if not {"mu", "sigma"} <= set(value) <= allowed:
            raise InvalidArgumentError(
                f"hyperparameter {name!r}: a dictionary must have mu and sigma, and may have lower "
                f"and upper; it has {sorted(value)}"
            )
        ends = [value.get("lower"), value.get("upper")]
        whole = all(isinstance(v, int) for v in (value["mu"], *ends) if v is not None)
        low = -math.inf if ends[0] is None else ends[0]
        high = math.inf if ends[1] is None else ends[1]
        kind = "normal_integer" if whole and None not in ends else "normal"
        return Domain(kind, value["mu"], value["sigma"], low, high)
    if isinstance(value, tuple):
        numbers = [v for v in value if _is_number(v)]
        prior = "uniform"
        if len(value) == 3 and isinstance(value[2], str):
            prior = value[2]
        if prior not in ("uniform", "log-uniform") or len(numbers) != 2 or len(value) not in (2, 3):
            raise InvalidArgumentError(
                f"hyperparameter {name!r}: a range is (low, high) or (low, high, 'log-uniform'), "
                f"not {value!r}"
            )
        whole = all(isinstance(v, int) for v in numbers)
        return Domain("integer" if whole else "real", numbers[0], numbers[1], prior)
    if isinstance(value, list):
        if not value:
            raise InvalidArgumentError(f"hyperparameter {name!r}: the list is empty")
        kind = "ordinal" if all(_is_number(v) for v in value) else "choice"
        return Domain(kind, value)
    return value  # a constant


class SpaceDimNameOfWrongType(InvalidArgumentError):
    """The name of a hyperparameter is not a text."""


class HpProblem:
    """Hyperparameters with their ranges, conditions and starting points.

    problem = HpProblem()
    problem.add_hyperparameter((1, 10), "layers")                     # whole numbers
    problem.add_hyperparameter((1e-4, 1e-1, "log-uniform"), "lr")
    problem.add_hyperparameter(["sgd", "adam"], "optimizer")          # no order
    """

    def __init__(self, config_space: Any = None, objectives: int = 1) -> None:
        self._parameters: Dict[str, Any] = {}
        self._defaults: Dict[str, Any] = {}
        self._conditions: List[Tuple[str, Dict[str, Any]]] = []
        self._forbidden: List[Dict[str, Any]] = []
        self._constraint: Optional[Callable[[Dict[str, Any]], bool]] = None
        self.starting_points: List[Dict[str, Any]] = []
        self.objectives = objectives
        self.references: List[str] = []
        if config_space is not None:
            parameters, conditions, forbidden = _configspace.parts_of(config_space)
            self.add_hyperparameters(parameters)
            self.add_conditions(conditions)
            for clause in forbidden:
                self.add_forbidden_clause(clause)

    def add_hyperparameter(
        self, value: Any, name: Optional[str] = None, default_value: Any = None
    ) -> Any:
        """Adds one: (low, high), (low, high, "log-uniform"), a list, {"mu", "sigma"}, a constant, a
        word of kolo.tune, or a hyperparameter of ConfigSpace."""
        if name is None and _configspace.is_hyperparameter(value):
            name = value.name
        if not isinstance(name, str) or not name:
            raise SpaceDimNameOfWrongType(
                f"the name of a hyperparameter must be a text, not {name!r}"
            )
        if name in self._parameters:
            raise AlreadyExistsError(f"hyperparameter {name!r} was added already")
        domain = _domain(value, name)
        space = _core.Space({name: domain}, [], [], None, [])  # raises, naming the rule
        if default_value is not None:
            space.check({name: default_value})
            self._defaults[name] = default_value
        self._parameters[name] = domain
        return _configspace.as_seen_by_caller(name, domain)

    def add_hyperparameters(self, hp_list: Sequence[Any]) -> List[Any]:
        """Adds several: hyperparameters of ConfigSpace, or tuples of the arguments of
        add_hyperparameter."""
        return [
            self.add_hyperparameter(*one)
            if isinstance(one, tuple)
            else self.add_hyperparameter(one)
            for one in hp_list
        ]

    def add_dim(self, p_name: str, p_space: Any) -> Any:
        """The older name of add_hyperparameter, with the arguments the other way round."""
        return self.add_hyperparameter(p_space, p_name)

    def add_condition(self, child: Any, clause: Optional[Dict[str, Any]] = None) -> None:
        """The child exists only if the clause holds: add_condition("momentum", equals("opt", "sgd")),
        or a condition of ConfigSpace alone."""
        if clause is None:
            child, clause = _configspace.child_of(child), _configspace.clause_of(child)
        if child not in self._parameters:
            raise unknown_name("add_condition: the hyperparameter", child, self._parameters)
        self._try(self._conditions, (child, clause))

    def add_conditions(self, conditions: Sequence[Any]) -> None:
        """Adds several conditions: pairs, or conditions of ConfigSpace."""
        for one in conditions:
            self.add_condition(*(one if isinstance(one, tuple) else (one,)))

    def add_forbidden_clause(self, clause: Any) -> None:
        """No configuration may fulfil the clause, which may be one of ConfigSpace."""
        if _configspace.is_clause(clause):
            clause = _configspace.clause_of(clause)
        self._try(self._forbidden, clause)

    def add_starting_point(self, **dims: Any) -> None:
        """A configuration that is evaluated first; what it leaves out is drawn."""
        self._try(self.starting_points, dict(dims))

    def _try(self, parts: List[Any], part: Any) -> None:
        """Adds the part; a wrong one is not kept, so that it can be added in the right way."""
        parts.append(part)
        try:
            self._kolo_space()
        except Exception:
            parts.pop()
            raise

    def set_constraint_fn(self, function: Callable[[Dict[str, Any]], bool]) -> None:
        """False from the function means that the configuration must not be tried."""
        self._constraint = function

    @property
    def hyperparameter_names(self) -> List[str]:
        """The names, sorted."""
        return sorted(self._parameters)

    def varies(self) -> bool:
        """Whether there is more than one configuration."""
        return any(
            isinstance(domain, Domain) and not _is_single(domain)
            for domain in self._parameters.values()
        )

    @property
    def default_configuration(self) -> Dict[str, Any]:
        """The default values; without one: the middle of a range, the first of a list."""
        out = {}
        for name, domain in sorted(self._parameters.items()):
            out[name] = self._defaults.get(name, _middle(domain))
        return out

    def check_configuration(self, parameters: Dict[str, Any]) -> None:
        """Raises, naming hyperparameter and rule, unless the problem allows the configuration."""
        self._kolo_space().check(parameters)

    def typed(self, name: str, value: Any) -> Any:
        """A value that was written to a table, as the hyperparameter has it."""
        domain = self._parameters[name]
        value = value.item() if hasattr(value, "item") else value
        if not isinstance(domain, Domain):
            return domain
        kind, arguments = domain._kolo_domain
        if kind in ("choice", "ordinal"):
            same = [one for one in arguments[0] if one == value or str(one) == str(value)]
            return same[0] if same else value
        return int(float(value)) if "int" in kind else float(value)

    def _kolo_space(self) -> Any:
        if not self._parameters:
            raise InvalidArgumentError("the problem has no hyperparameters")
        return _core.Space(
            self._parameters,
            self._conditions,
            self._forbidden,
            self._constraint,
            self.starting_points,
        )

    def to_json(self) -> str:
        """The problem as the command ``kolo hps`` reads it."""
        if self._constraint is not None:
            raise InvalidArgumentError(
                "a problem with a constraint function can be searched from Python only"
            )
        space: Dict[str, Any] = {
            "kolo_space": 1,
            "parameters": {name: _leaf(name, d) for name, d in self._parameters.items()},
        }
        if self._conditions:
            space["conditions"] = {child: _clause(clause) for child, clause in self._conditions}
        if self._forbidden:
            space["forbidden"] = [_clause(clause) for clause in self._forbidden]
        if self.starting_points:
            space["starting_points"] = self.starting_points
        return json.dumps(
            {
                "kolo_problem": 1,
                "space": space,
                "default_values": self._defaults,
                "objectives": self.objectives,
            }
        )

    def __repr__(self) -> str:
        lines = [f"  {name}: {domain}" for name, domain in sorted(self._parameters.items())]
        return "HpProblem(\n" + "\n".join(lines) + "\n)"


BaseProblem = HpProblem


def _is_single(domain: Domain) -> bool:
    kind, arguments = domain._kolo_domain
    return kind in ("ordinal", "choice", "categorical") and len(arguments[0]) == 1


def _middle(domain: Any) -> Any:
    if not isinstance(domain, Domain):
        return domain
    kind, arguments = domain._kolo_domain
    if kind in ("real", "integer"):
        low, high, prior = arguments
        middle = math.sqrt(low * high) if prior == "log-uniform" else (low + high) / 2
        return int(middle) if kind == "integer" else middle
    if kind in ("normal", "normal_integer"):
        return arguments[0]
    if kind in ("ordinal", "choice", "categorical"):
        return arguments[0][0]
    return domain.sample()


def _leaf(name: str, domain: Any) -> Any:
    if not isinstance(domain, Domain):
        return domain
    kind, arguments = domain._kolo_domain
    if kind == "sample_from":
        raise InvalidArgumentError(
            f"hyperparameter {name!r}: functions can be searched from Python only"
        )
    if kind in ("ordinal", "choice", "grid_search"):
        return {kind: list(arguments[0])}
    if kind in ("real", "integer") and arguments[2] == "uniform":
        arguments = arguments[:2]
    return {kind: list(arguments)}


def _clause(clause: Dict[str, Any]) -> Dict[str, Any]:
    kind = clause["kind"]
    if kind in ("all_of", "any_of"):
        word = "and" if kind == "all_of" else "or"
        return {word: [_clause(part) for part in clause["clauses"]]}
    if kind == "same":
        return {kind: [clause["path"], clause["other"]]}
    if kind == "in":
        return {kind: [clause["path"], clause["values"]]}
    return {kind: [clause["path"], clause["values"][0]]}


def equals(name: str, value: Any) -> Dict[str, Any]:
    """The hyperparameter has this value."""
    return {"kind": "equals", "path": name, "values": [value]}


def not_equals(name: str, value: Any) -> Dict[str, Any]:
    """The hyperparameter has another value."""
    return {"kind": "not_equals", "path": name, "values": [value]}


def less(name: str, value: Any) -> Dict[str, Any]:
    """The hyperparameter is less."""
    return {"kind": "less", "path": name, "values": [value]}


def greater(name: str, value: Any) -> Dict[str, Any]:
    """The hyperparameter is greater."""
    return {"kind": "greater", "path": name, "values": [value]}


def one_of(name: str, values: Sequence[Any]) -> Dict[str, Any]:
    """The hyperparameter has one of these values."""
    return {"kind": "in", "path": name, "values": list(values)}


def all_of(*clauses: Dict[str, Any]) -> Dict[str, Any]:
    """All clauses hold."""
    return {"kind": "all_of", "clauses": list(clauses)}


def any_of(*clauses: Dict[str, Any]) -> Dict[str, Any]:
    """At least one clause holds."""
    return {"kind": "any_of", "clauses": list(clauses)}
