"""How much of a machine the trials of a study need each."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence

from kolo._errors import InvalidArgumentError, did_you_mean


class PlacementGroupFactory:
    """Resources in bundles: [{"CPU": 1}, {"CPU": 2, "GPU": 1}], of which the first is the trainable's
    own. A study reserves their sum for each trial; ``strategy`` changes nothing."""

    def __init__(
        self,
        bundles: Sequence[Mapping[str, float]],
        strategy: str = "PACK",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if not bundles or not all(isinstance(bundle, Mapping) for bundle in bundles):
            raise InvalidArgumentError(
                "PlacementGroupFactory: bundles must be a list of dictionaries, such as "
                f'[{{"CPU": 1}}], not {bundles!r}'
            )
        self.head_bundle_is_empty = not any(bundles[0].values())
        given = bundles[1:] if self.head_bundle_is_empty else bundles
        if not given:
            raise InvalidArgumentError("PlacementGroupFactory: the only bundle is empty")
        self.bundles: List[Dict[str, float]] = [
            {name: float(amount) for name, amount in bundle.items() if amount} for bundle in given
        ]
        self.strategy = strategy

    @property
    def required_resources(self) -> Dict[str, float]:
        """The sum of the bundles."""
        total: Dict[str, float] = {}
        for bundle in self.bundles:
            for name, amount in bundle.items():
                total[name] = total.get(name, 0) + amount
        return total

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, PlacementGroupFactory)
            and self.bundles == other.bundles
            and self.strategy == other.strategy
        )

    def __hash__(self) -> int:
        return hash((str(self.bundles), self.strategy))

    def __repr__(self) -> str:
        return f"PlacementGroupFactory({self.bundles!r}, strategy={self.strategy!r})"


def amounts_of(resources: Any, what: str) -> Dict[str, float]:
    """Amounts by name, as the study takes them; ``what`` was asked for them."""
    if isinstance(resources, PlacementGroupFactory):
        resources = resources.required_resources
    if not isinstance(resources, Mapping):
        raise InvalidArgumentError(
            f'{what}: resources must be a dictionary such as {{"cpu": 2}}, not {resources!r}'
        )
    amounts = {key.lower() if key in ("CPU", "GPU") else key: v for key, v in resources.items()}
    amounts.update(amounts.pop("custom_resources", None) or {})
    for name, amount in amounts.items():
        if name != "ranks" and not hasattr(type(amount), "__float__"):
            raise InvalidArgumentError(
                f"{what}: {amount!r} of the resource {name!r} is not a number"
            )
    return amounts


def check_names(amounts: Mapping[str, float], total: Optional[Mapping[str, float]]) -> None:
    """Refuses what is no resource of the study, if it looks like a misspelt name of one."""
    known = ["cpu", "gpu", "ranks", *(total or {})]
    for name in amounts:
        hint = did_you_mean(name, known)
        if name not in known and hint:
            raise InvalidArgumentError(
                f"tune.run: a trial shall have {amounts[name]} of {name!r}, of which the study has none"
                f"{hint}"
            )


def placement_of(amounts: Mapping[str, float]) -> PlacementGroupFactory:
    """Amounts by name as one bundle, in Tune's words."""
    names = {"cpu": "CPU", "gpu": "GPU"}
    bundle = {names.get(name, name): amount for name, amount in amounts.items()}
    return PlacementGroupFactory([bundle] if any(bundle.values()) else [{}, {"CPU": 0}])


__all__ = ["PlacementGroupFactory"]
