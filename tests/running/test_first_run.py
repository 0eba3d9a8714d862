"""What a first run costs besides its machine code, in a process that has compiled nothing."""

import subprocess
import sys

SCRIPT = """
import jax
from mime import GraphManager, MotorNode

compiled = []

def note(event, seconds, **about):
    if event.endswith("backend_compile_duration"):
        compiled.append(about.get("fun_name"))

jax.config.update("jax_enable_x64", True)
jax.monitoring.register_event_duration_secs_listener(note)
graph = GraphManager()
motor = {"inertia_kg_m2": 1e-4, "kt_n_m_per_a": 0.05, "r_ohm": 1, "l_henry": 1e-3}
motor |= {"damping_n_m_s": 0.0, "command_mode": "voltage"}
axis = {"axis_in_parent_frame": [0, 1, 0]}
graph.add_node(MotorNode("motor", 1e-4, **motor, **axis))
graph.add_external_input("motor", "commanded_voltage")
run = graph.compile().run(steps=10, inputs={"motor": {"commanded_voltage": 5.0}}, progress=False)
assert run["motor"]["rotor_angular_velocity"][-1] > 0
print(compiled)
"""


def test_to_build_and_run_a_motor_is_no_work_for_xla():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
