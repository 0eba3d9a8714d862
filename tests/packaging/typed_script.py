"""A user's script with plain numbers, as `make lint` reads it: right as it stands, with one error.

mypy checks this file together with MIME, as strictly as a user's checker can be (pyproject.toml).
It tells an error that it does not expect, and an expected one that it does not find.
"""

from mime import Gear, GraphManager, MotorNode

motor = MotorNode(
    "motor", 1e-4, 1e-4, 0.05, 1.0, 1e-3, 5e-4, gear=Gear(ratio=20.0), command_mode="voltage"
)
graph = GraphManager()
graph.add_node(motor)
graph.add_external_input("motor", "commanded_voltage")
run = graph.compile().run(1.0, {"motor": {"commanded_voltage": 5.0}}, every=10)
print(run["motor"]["current"][-1], run.time.shape)

graph.compile().run(1.0, evry=10)  # type: ignore[call-arg]
