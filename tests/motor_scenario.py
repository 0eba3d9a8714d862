"""A motor in volts as a scenario file: the smallest one that does something."""

CONSTANT = 'kind = "constant"\nvalue = 5.0'


def motor_scenario(simulation="duration = 0.01\ntimestep = 1e-4", voltage=CONSTANT, more=""):
    """The file's text: keys of `[simulation]`, of the voltage, and what else it should hold."""
    return f"""
[simulation]
{simulation}

[nodes.rotor]
type = "MotorNode"
inertia_kg_m2 = 1e-4
kt_n_m_per_a = 0.05
r_ohm = 1.0
l_henry = 1e-3
damping_n_m_s = 5e-4
command_mode = "voltage"

[inputs."rotor.commanded_voltage"]
{voltage}
{more}"""
