"""Hyperparameters, conditions and clauses of ConfigSpace, as those of kolo.

They are known by their members: ConfigSpace itself is not imported. Programs that have imported it
get its objects from HpProblem.add_hyperparameter, for conditions.
"""

from __future__ import annotations

import math
import sys
from typing import Any, Dict, List, Optional, Tuple

from kolo._errors import UnsupportedError
from kolo.tune.sample import Domain

_CLAUSES = {
    "EqualsCondition": "equals",
    "NotEqualsCondition": "not_equals",
    "LessThanCondition": "less",
    "GreaterThanCondition": "greater",
    "InCondition": "in",
    "ForbiddenEqualsClause": "equals",
    "ForbiddenInClause": "in",
}
_COMBINED = {
    "AndConjunction": "all_of",
    "OrConjunction": "any_of",
    "ForbiddenAndConjunction": "all_of",
}


def is_hyperparameter(value: Any) -> bool:
    """Whether it comes from ConfigSpace."""
    return type(value).__module__.startswith("ConfigSpace") and hasattr(value, "default_value")


def is_clause(value: Any) -> bool:
    """A condition or a forbidden clause of ConfigSpace."""
    return type(value).__name__ in {**_CLAUSES, **_COMBINED}


def domain_of(parameter: Any) -> Any:
    """The domain of a hyperparameter; a constant is itself."""
    kind = type(parameter).__name__
    if kind == "Constant":
        return parameter.value
    if kind == "OrdinalHyperparameter":
        return Domain("ordinal", list(parameter.sequence))
    if kind == "CategoricalHyperparameter":
        choices = list(parameter.choices)
        weights = getattr(parameter, "weights", None)
        if weights is None:
            return Domain("choice", choices)
        return Domain("categorical", choices, [float(weight) for weight in weights])
    prior = "log-uniform" if getattr(parameter, "log", False) else "uniform"
    if kind == "UniformFloatHyperparameter":
        return Domain("real", float(parameter.lower), float(parameter.upper), prior)
    if kind == "UniformIntegerHyperparameter":
        return Domain("integer", int(parameter.lower), int(parameter.upper), prior)
    if kind in ("NormalFloatHyperparameter", "NormalIntegerHyperparameter"):
        lower, upper = getattr(parameter, "lower", None), getattr(parameter, "upper", None)
        low = -math.inf if lower is None else lower
        high = math.inf if upper is None else upper
        whole = kind == "NormalIntegerHyperparameter" and None not in (lower, upper)
        return Domain(
            "normal_integer" if whole else "normal", parameter.mu, parameter.sigma, low, high
        )
    raise UnsupportedError(f"hyperparameters of the kind {kind} are not supported")


def as_seen_by_caller(name: str, domain: Any) -> Any:
    """A hyperparameter of ConfigSpace if the program has imported that, else the domain."""
    made = sys.modules.get("ConfigSpace.hyperparameters")
    if made is None or not isinstance(domain, Domain):
        return domain
    kind, arguments = domain._kolo_domain
    if kind in ("real", "integer"):
        whole = kind == "integer"
        make = made.UniformIntegerHyperparameter if whole else made.UniformFloatHyperparameter
        low, high, prior = arguments
        return make(name=name, lower=low, upper=high, log=prior == "log-uniform")
    if kind == "ordinal":
        return made.OrdinalHyperparameter(name=name, sequence=arguments[0])
    if kind == "choice":
        return made.CategoricalHyperparameter(name=name, choices=arguments[0])
    if kind in ("normal", "normal_integer"):
        mu, sigma, low, high = arguments
        whole = kind == "normal_integer" or (isinstance(mu, int) and isinstance(sigma, int))
        make = made.NormalIntegerHyperparameter if whole else made.NormalFloatHyperparameter
        ends = {} if math.isinf(low) or math.isinf(high) else {"lower": low, "upper": high}
        return make(name=name, mu=mu, sigma=sigma, **ends)
    return domain


def clause_of(clause: Any) -> Dict[str, Any]:
    """A condition without its child, or a forbidden clause."""
    kind = type(clause).__name__
    if kind in _COMBINED:
        parts = clause.components
        return {"kind": _COMBINED[kind], "clauses": [clause_of(part) for part in parts]}
    if kind not in _CLAUSES:
        raise UnsupportedError(f"clauses of the kind {kind} are not supported")
    of = getattr(clause, "parent", None) or clause.hyperparameter
    values = list(clause.values) if _CLAUSES[kind] == "in" else [clause.value]
    return {"kind": _CLAUSES[kind], "path": of.name, "values": values}


def child_of(condition: Any) -> str:
    """The name of the hyperparameter that a condition is about."""
    while type(condition).__name__ in _COMBINED:
        condition = condition.components[0]
    return condition.child.name


def parts_of(space: Any) -> Tuple[List[Any], List[Any], List[Any]]:
    """The hyperparameters, conditions and forbidden clauses of a ConfigurationSpace."""

    def all_of(old: str, new: str) -> List[Any]:
        found: Optional[Any] = getattr(space, old, None)
        return list(found()) if found is not None else list(getattr(space, new))

    parameters = all_of("get_hyperparameters", "hyperparameters")
    if parameters and isinstance(parameters[0], str):
        parameters = [space[name] for name in parameters]
    return (
        parameters,
        all_of("get_conditions", "conditions"),
        all_of("get_forbiddens", "forbidden_clauses"),
    )
