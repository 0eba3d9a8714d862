"""Figures of real motors as their makers print them: plain data, which a shell's Tab reads too."""

FAULHABER = "FAULHABER, DC-Micromotors{}, Precious Metal Commutation, Series {} ... SR"
MAXON = "maxon motor, {}, graphite brushes, {} W, 48 V winding ({})"

COLUMNS = """nominal_voltage_v no_load_speed_rpm no_load_current_a stall_torque_n_m r_ohm
    l_henry kt_n_m_per_a rotor_inertia_kg_m2 mechanical_time_constant_s""".split()  # noqa: SIM905
ROWS = {
    "faulhaber_0816k006sr": (6, 13_500, 8.3e-3, 1.13e-3, 21.2, 217e-6, 4.12e-3, 0.052e-7, 6.5e-3),
    "faulhaber_1331t006sr": (6, 10_600, 22.0e-3, 11.20e-3, 2.83, 70e-6, 5.35e-3, 0.71e-7, 7e-3),
    "faulhaber_1331t012sr": (12, 9_900, 10.5e-3, 9.90e-3, 13.7, 310e-6, 11.4e-3, 0.67e-7, 7e-3),
    "faulhaber_1524t012sr": (12, 9_800, 7e-3, 6.92e-3, 19.8, 420e-6, 11.5e-3, 0.56e-7, 8.3e-3),
    "faulhaber_1524t024sr": (24, 9_800, 4e-3, 6.91e-3, 79.3, 1670e-6, 23.1e-3, 0.56e-7, 8.3e-3),
    "maxon_re30_310009": (48, 8_490, 78.6e-3, 1.050, 2.45, 0.513e-3, 53.8e-3, 34.7e-7, 2.94e-3),
    "maxon_re40_148877": (48, 7_590, 68.6e-3, 2.560, 1.13, 0.330e-3, 60.3e-3, 137e-7, 4.28e-3),
}
SERIES = {"0816": "", "1331": " 3,2 mNm", "1524": " 2,9 mNm"}
FRAMES = {
    "maxon_re30_310009": (19.6, "RE 30 Ø30 mm", 60, 310009),
    "maxon_re40_148877": (42.4, "RE 40 Ø40 mm", 150, 148877),
}
"""Stall current in A, frame, power in W, order number."""

E_MANUAL = "ROBOTIS e-Manual, {}"
SERVO_COLUMNS = """kp duty_per_kp duty_limit ticks_per_turn gear_ratio nominal_voltage_v
    no_load_speed_rpm no_load_current_a stall_torque_n_m stall_current_a""".split()  # noqa: SIM905
SERVO_ROWS = {
    "xl330_m288": (400, 2.877e-3, 1, 4096, 288.4, 5, 103, None, 0.52, 1.47),
    "mx64": (850, 5.755e-3, 1, 4096, 200, 12, 63, None, 6.0, 4.1),
    "mx106": (850, 5.755e-3, 1, 4096, 225, 12, 45, None, 8.4, 5.2),
    "sts3215_c001": (32, 0.166, 0.97, 4096, 345, 7.4, 52, 0.15, 1.912, 2.5),
}
"""At the voltage that its maker recommends; None where no figure is published."""
SERVO_SOURCES = {
    "xl330_m288": (
        E_MANUAL.format("XL330-M288-T"),
        "measured by Rhoban/bam: 4096/(2 pi)/(256 885), where the e-Manual divides by 128",
    ),
    "mx64": (
        E_MANUAL.format("MX-64T/R/AT/AR (protocol 2.0)"),
        "the e-Manual's 4096/(2 pi)/(128 885)",
    ),
    "mx106": (E_MANUAL.format("MX-106T/R (protocol 2.0)"), "the e-Manual's 4096/(2 pi)/(128 885)"),
    "sts3215_c001": (
        "FEETECH, STS3215-C001, 7.4 V, 1:345, as its distributors print it",
        "measured with an oscilloscope by Rhoban/bam, its duty limit too",
    ),
}
"""Where the figures are printed, and where duty_per_kp is from."""
