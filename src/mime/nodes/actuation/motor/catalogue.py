"""Real motors, with figures as their makers print them. Each entry names its sheet."""

from mime.nodes.actuation.motor.datasheet import Datasheet

_FAULHABER_1331 = (
    "FAULHABER, DC-Micromotors 3,2 mNm, Precious Metal Commutation, Series 1331 ... SR"
)
_FAULHABER_1524 = (
    "FAULHABER, DC-Micromotors 2,9 mNm, Precious Metal Commutation, Series 1524 ... SR"
)
_FAULHABER_0816 = "FAULHABER, DC-Micromotors, Precious Metal Commutation, Series 0816 ... SR"

CATALOGUE: dict[str, Datasheet] = {
    "faulhaber_0816k006sr": Datasheet(
        nominal_voltage_v=6.0,
        no_load_speed_rpm=13_500.0,
        no_load_current_a=0.0083,
        stall_torque_n_m=1.13e-3,
        r_ohm=21.2,
        l_henry=217e-6,
        kt_n_m_per_a=4.12e-3,
        rotor_inertia_kg_m2=0.052e-7,
        mechanical_time_constant_s=6.5e-3,
        reference_temperature_c=22.0,
        source=_FAULHABER_0816,
    ),
    "faulhaber_1331t006sr": Datasheet(
        nominal_voltage_v=6.0,
        no_load_speed_rpm=10_600.0,
        no_load_current_a=0.0220,
        stall_torque_n_m=11.20e-3,
        r_ohm=2.83,
        l_henry=70e-6,
        kt_n_m_per_a=5.35e-3,
        rotor_inertia_kg_m2=0.71e-7,
        mechanical_time_constant_s=7e-3,
        reference_temperature_c=22.0,
        source=_FAULHABER_1331,
    ),
    "faulhaber_1331t012sr": Datasheet(
        nominal_voltage_v=12.0,
        no_load_speed_rpm=9_900.0,
        no_load_current_a=0.0105,
        stall_torque_n_m=9.90e-3,
        r_ohm=13.7,
        l_henry=310e-6,
        kt_n_m_per_a=11.4e-3,
        rotor_inertia_kg_m2=0.67e-7,
        mechanical_time_constant_s=7e-3,
        reference_temperature_c=22.0,
        source=_FAULHABER_1331,
    ),
    "faulhaber_1524t012sr": Datasheet(
        nominal_voltage_v=12.0,
        no_load_speed_rpm=9_800.0,
        no_load_current_a=0.007,
        stall_torque_n_m=6.92e-3,
        r_ohm=19.8,
        l_henry=420e-6,
        kt_n_m_per_a=11.5e-3,
        rotor_inertia_kg_m2=0.56e-7,
        mechanical_time_constant_s=8.3e-3,
        reference_temperature_c=22.0,
        source=_FAULHABER_1524,
    ),
    "faulhaber_1524t024sr": Datasheet(
        nominal_voltage_v=24.0,
        no_load_speed_rpm=9_800.0,
        no_load_current_a=0.004,
        stall_torque_n_m=6.91e-3,
        r_ohm=79.3,
        l_henry=1670e-6,
        kt_n_m_per_a=23.1e-3,
        rotor_inertia_kg_m2=0.56e-7,
        mechanical_time_constant_s=8.3e-3,
        reference_temperature_c=22.0,
        source=_FAULHABER_1524,
    ),
    "maxon_re30_310009": Datasheet(
        nominal_voltage_v=48.0,
        no_load_speed_rpm=8_490.0,
        no_load_current_a=78.6e-3,
        stall_torque_n_m=1.050,
        stall_current_a=19.6,
        r_ohm=2.45,
        l_henry=0.513e-3,
        kt_n_m_per_a=53.8e-3,
        rotor_inertia_kg_m2=34.7e-7,
        mechanical_time_constant_s=2.94e-3,
        source="maxon motor, RE 30 Ø30 mm, graphite brushes, 60 W, 48 V winding (310009)",
    ),
    "maxon_re40_148877": Datasheet(
        nominal_voltage_v=48.0,
        no_load_speed_rpm=7_590.0,
        no_load_current_a=68.6e-3,
        stall_torque_n_m=2.560,
        stall_current_a=42.4,
        r_ohm=1.13,
        l_henry=0.330e-3,
        kt_n_m_per_a=60.3e-3,
        rotor_inertia_kg_m2=137e-7,
        mechanical_time_constant_s=4.28e-3,
        source="maxon motor, RE 40 Ø40 mm, graphite brushes, 150 W, 48 V winding (148877)",
    ),
}
"""`MotorNode.from_datasheet("wheel", 1e-4, CATALOGUE["faulhaber_1524t012sr"])`"""
