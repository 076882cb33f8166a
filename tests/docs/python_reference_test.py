#!/usr/bin/env python3
"""The Python reference has the names that people use, each once, with what their sources say.

    python_reference_test.py SOURCE_DIR
"""
import ast
import pathlib
import re
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[1])
with tempfile.TemporaryDirectory() as scratch:
    subprocess.run([source / "scripts/python_reference.py", source / "python/kolo", scratch], check=True, timeout=60)
    pages = {path.stem: path.read_text() for path in pathlib.Path(scratch).glob("*.md")}

headings = [name for text in pages.values() for name in re.findall(r"^### (\S+)$", text, re.M)]
assert len(headings) == len(set(headings)), sorted(name for name in headings if headings.count(name) > 1)
for name in ("kolo.run", "kolo.allreduce", "kolo.torch.DistributedOptimizer", "kolo.torch.elastic.TorchState",
             "kolo.tensorflow.DistributedGradientTape", "kolo.tune.run", "kolo.tune.Tuner",
             "kolo.tune.schedulers.PopulationBasedTraining", "kolo.hps.CBO", "kolo.hps.HpProblem", "kolo.air.RunConfig"):
    assert name in headings, f"{name} is missing"
assert not any(part.startswith("_") for name in headings for part in name.split(".")), "an inner name has a heading"

# What stands there is Python: a reader may copy it.
for page, text in pages.items():
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
        ast.parse(block)
assert '"""An optimizer of the same class' in pages["kolo.torch"], "what the sources say is missing"
navigation = (source / "docs/site.yml").read_text()
for page in pages:
    assert f"python-reference/{page}.md" in navigation, f"docs/site.yml does not show {page}"
