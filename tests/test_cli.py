"""The `mime` command: what it prints and writes, its exit codes, its messages."""

import base64
import errno
import os
import re
import subprocess
import sys

import jax
import numpy as np
import pytest

import mime
from mime import Trajectory, load_scenario, model_path
from mime.cli import main
from mime.scenarios.bundled import bundled_scenarios
from motor_scenario import motor_scenario

MOTOR = motor_scenario(
    "duration = 0.05\ntimestep = 1e-4",
    more="""
[[plots]]
title = "Speed & <current>"
fields = ["rotor.rotor_angular_velocity", "rotor.current"]
[[figures_of_merit]]
name = "last speed"
kind = "final"
field = "rotor.rotor_angular_velocity"
at_most = 100.0
""",
)


def run(*arguments):
    command = [sys.executable, "-c", "from mime.cli import main; main()", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def cli(capsys, tmp_path, monkeypatch):
    """`cli("run", ...)` in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mime.cli.enable_compilation_cache", lambda: None)
    (tmp_path / "motor.toml").write_text(MOTOR, encoding="utf-8")

    def call(*words):
        try:
            main(words)
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        return (code, *capsys.readouterr())

    return call


def test_the_version_is_printed(cli):
    assert run("--version").stdout == f"mime {mime.__version__}\n"
    assert cli("--version") == cli("version") == (0, f"mime {mime.__version__}\n", "")
    assert cli("-V") == cli("--version")
    assert "--version" in cli("--help")[1]


def test_the_cache_can_be_seen_and_cleared(cli, tmp_path, monkeypatch):
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "program").write_bytes(b"x" * 2_000_000)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder))
    assert cli("cache")[1] == f"{folder}: 2.0 MB of compiled programs\n"
    assert cli("cache", "--clear")[1] == f"removed 2.0 MB from {folder}\n"
    assert not folder.exists()
    assert cli("cache")[1] == f"{folder}: 0.0 MB of compiled programs\n"


def test_the_package_runs_as_a_command():
    command = [sys.executable, "-m", "mime", "-V"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (result.returncode, result.stdout) == (0, f"mime {mime.__version__}\n")


def test_a_wrong_command_is_answered_without_a_traceback():
    result = run("cach")
    assert result.returncode == 2
    assert result.stderr.startswith("there is no command 'cach' (did you mean 'cache'?). The ")


@pytest.mark.parametrize("words", [["run", "--help"], ["list", "scenarios"], ["--version"]])
def test_a_reader_that_leaves_early_ends_the_command_without_a_word(words):
    command = [sys.executable, "-c", "from mime.cli import main; main()", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode in (141, 1)  # as shells say of a broken pipe; 1 from a table of rich


def test_a_run_writes_its_results_and_one_page_that_needs_no_other_file(cli, tmp_path):
    code, out, _ = cli("run", "motor.toml", "--out", "here", "--set", "rotor.r_ohm=2.0")
    assert code == 0
    assert re.search(r"last speed +\d+\.\d+ rad/s +≤ 100 rad/s +ok", out)
    assert re.search(r"rotor\.current +\S+ +\S+ +\S+ +A", out)
    files = {path.name for path in (tmp_path / "here").iterdir()}
    assert files == {".mime-run.json", "result.nc", "report.html", "plot_1.png"}
    result = Trajectory.load(tmp_path / "here" / "result.nc")
    assert result.units["rotor"]["current"] == "A"
    assert result.parameters["rotor"]["r_ohm"] == 2.0
    page = (tmp_path / "here" / "report.html").read_text(encoding="utf-8")
    assert "mime run motor.toml --set rotor.r_ohm=2.0 --out here" in page
    assert "Speed &amp; &lt;current&gt;" in page
    for word in ("seed", "jaxlib", "r_ohm", "Ω", mime.__version__, "last speed"):
        assert word in page
    images = re.findall(r'src="([^"]+)"', page)
    assert len(images) == 2
    for address in images:
        assert base64.b64decode(address.removeprefix("data:image/png;base64,")).startswith(
            b"\x89PNG"
        )
    assert not re.search(r'(href|src)="(?!data:)', page)


def test_a_quiet_run_prints_nothing_and_goes_to_the_usual_folder(cli, tmp_path):
    assert cli("run", "motor.toml", "--quiet") == (0, "", "")
    assert (tmp_path / "mime_output" / "motor" / "result.nc").is_file()


def test_a_figure_outside_its_limits_fails_the_run_and_keeps_its_results(cli, tmp_path):
    low = (tmp_path / "motor.toml").read_text().replace("at_most = 100.0", "at_most = 1.0")
    (tmp_path / "low.toml").write_text(low)
    code, out, err = cli("run", "low.toml", "--out", "here")
    assert code == 1
    assert "OUTSIDE" in out
    assert err == "outside its limits: last speed\n"
    assert (tmp_path / "here" / "result.nc").is_file()


def test_a_run_that_diverges_says_where_and_keeps_what_came_before(cli, tmp_path):
    code, _, err = cli("run", "motor.toml", "--out", "here", "--set", "rotor.kt_n_m_per_a=1e9")
    assert code == 1
    assert re.search(
        r"rotor\.\w+ is not finite at t = \S+ s; what was computed before is kept in ", err
    )
    assert "Traceback" not in err
    files = {path.name for path in (tmp_path / "here").iterdir()}
    assert files == {".mime-run.json", "result.partial.nc"}


NOTHING = "there is no node, assembly, model, motor, servo, scenario called"
MISTAKES = {
    "no such scenario": (
        ["run", "motr_step"],
        "motr_step: no such file, and no bundled scenario of that name (did you mean 'motor_step'",
    ),
    "a folder": (["run", "."], ".: is a folder, expected a scenario file"),
    "bad value": (
        ["run", "motor.toml", "--set", "rotor.r_ohm=-1"],
        "motor.toml: 1 problem\n  --set rotor.r_ohm=-1: nodes.rotor.r_ohm: must be >= 0 Ω, got -1",
    ),
    "bad file": (
        ["run", "motor.toml", "--set", "rotor.r_om=1", "--set", "rotor.type=MotorNod"],
        "motor.toml: 1 problem\n  --set rotor.type=MotorNod: nodes.rotor.type: no node type",
    ),
    "folder is a file": (
        ["run", "motor.toml", "--out", "motor.toml"],
        "cannot write to motor.toml",
    ),
    "folder cannot be": (
        ["run", "motor.toml", "--out", "/proc/here"],
        "cannot write to /proc/here",
    ),
    "unknown name": (["show", "MotorNod"], f"{NOTHING} 'MotorNod' (did you mean 'MotorNode'?)"),
    "unknown scenario": (
        ["show", "motr_step"],
        f"{NOTHING} 'motr_step' (did you mean 'motor_step'?)",
    ),
    "no result": (["plot", "none.nc"], "none.nc: no such file"),
    "not a result": (["plot", "motor.toml"], "motor.toml: not a trajectory of MIME"),
    "picture of what": (
        ["graph", "motor.toml", "--out", "graph.doc"],
        "graph.doc: must end in .svg or .png",
    ),
    "picture where": (
        ["graph", "motor.toml", "--out", "no/graph.svg"],
        "cannot write no/graph.svg",
    ),
    "scenario over a file": (
        ["new-scenario", "--from", "motor_step", "motor.toml"],
        "motor.toml: already there, and not overwritten",
    ),
    "scenario below a file": (
        ["new-scenario", "--from", "motor_step", "motor.toml/mine.toml"],
        "cannot write to motor.toml: File exists",
    ),
    "name of a node": (["new-node", "3 springs"], "a node's name has letters, digits and _"),
}


@pytest.mark.parametrize(("words", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_ends_with_two_and_a_message(cli, words, message):
    code, out, err = cli(*words)
    assert (code, out) == (2, "")
    assert err.startswith(message), err
    assert "Traceback" not in err


def test_a_read_only_disk_is_told_before_the_run(cli, monkeypatch, tmp_path):
    def refuse(**_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    code, _, err = cli("run", "motor.toml", "--out", "here")
    assert (code, err) == (2, "cannot write to here: Read-only file system\n")
    assert list((tmp_path / "here").iterdir()) == []


@pytest.mark.parametrize("words", [["run"], ["run", "a", "b"], ["list", "robots"], ["run", "--x"]])
def test_words_that_are_no_command_end_with_two(cli, words):
    assert cli(*words)[0] == 2


def test_debug_lets_the_error_out(cli):
    from mime.scenarios import ScenarioError

    with pytest.raises(ScenarioError):
        cli("run", "motor.toml", "--debug", "--set", "rotor.r_ohm=-1")


def test_lists_name_what_there_is(cli):
    code, out, _ = cli("list")
    assert code == 0
    for name in ("MotorNode", "RobotArmNode", "motor_step", "arm_with_rotor", "maxon_re40_148877"):
        assert name in out
    assert "MotorNode" not in cli("list", "motors")[1]


def test_robots_are_listed_and_shown_and_none_is_downloaded(cli, tmp_path, monkeypatch):
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "panda_description.py").write_text("raise AssertionError('downloaded')")
    (package / "_descriptions.py").write_text(
        "from types import SimpleNamespace as D\n"
        "DESCRIPTIONS = {'panda_description': D(has_urdf=True, has_mjcf=False, robot='Panda',"
        " maker='Franka', dof=9)}"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("robot_descriptions")]:
        monkeypatch.delitem(sys.modules, name)
    out = cli("list", "models")[1]
    assert re.search(r"planar_arm_3link +3 joints, 'model:planar_arm_3link' in scenarios", out)
    assert re.search(r"panda_description +Panda, Franka, 9 joints, URDF; robot_descriptions", out)
    assert "parse_robot(robot.URDF_PATH" in cli("show", "panda_description")[1]
    assert re.search(
        r"joint_3 +revolute +link_3 +0.1787 +-1.553 ", cli("show", "desktop_arm_6axis")[1]
    )


def test_a_robots_file_is_shown_with_what_is_wrong_in_it(cli, tmp_path):
    robot = model_path("planar_arm_3link").read_text()
    lower, upper = re.search(r'lower="(\S+)" upper="(\S+)"', robot).groups()
    limits = f'lower="{lower}" upper="{upper}"'
    (tmp_path / "arm.urdf").write_text("\n" + robot.replace(limits, 'lower="-170" upper="170"', 1))
    code, _, err = cli("show", "arm.urdf", "--on-problem", "refuse")
    assert code == 2
    assert "has limits -170 and 170 rad, which look like degrees" in err
    code, out, err = cli("show", "arm.urdf")
    assert (code, err) == (0, "")  # the table says what a warning would
    assert re.search(r"class +line +what +effect", out)
    assert re.search(r"reported +arm.urdf:\d+ +joint .* look like degrees +kept as rad", out)
    assert re.search(r"noted +arm.urdf:2 +the XML declaration .* the space is skipped", out)
    code, out, _ = cli("show", "arm.urdf", "--subtree", "link_1", "--lock", "wrist=0.1")
    assert out.startswith("planar_arm_3link  1 joints on 'link_1'")
    swapped = robot.replace(limits, f'lower="{upper}" upper="{lower}"', 1)
    (tmp_path / "arm.urdf").write_text(swapped)
    assert "on_problem='mend' reads the file" in cli("show", "arm.urdf")[2]
    assert re.search(r"mended +arm.urdf:\d+ ", cli("show", "arm.urdf", "--on-problem", "mend")[1])
    assert "simulated as it is written" in cli("show", "planar_arm_3link")[1]
    assert cli("show", "gone.urdf")[2].startswith("gone.urdf: cannot be read (No such file")


def test_all_that_refuses_a_robot_is_a_table_with_lines(cli, tmp_path):
    pytest.importorskip("mujoco")
    (tmp_path / "arm.xml").write_text(
        "<mujoco>\n<extension/>\n<deformable/>\n<worldbody><body><joint/><geom size='1'/></body>"
        "</worldbody></mujoco>"
    )
    code, out, err = cli("show", "arm.xml")
    assert code == 2
    assert re.search(r"refused +arm.xml:2 +<extension> loads code.* remove them", out)
    assert re.search(r"refused +arm.xml:3 +<deformable> is soft.* remove them", out)
    assert err.startswith("arm.xml:2: <extension> loads code")


XACRO = """<robot name="$(arg name)" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="name" default="robby"/><link name="a"/><link name="b"><inertial>
<mass value="$(arg mass)"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>"""


def test_a_robot_in_xacro_is_shown_and_viewed_with_its_arguments(cli, tmp_path):
    pytest.importorskip("xacrodoc")
    for name in ("robot.xacro", "robot.urdf"):
        (tmp_path / name).write_text(XACRO)
    code, _, err = cli("show", "robot.xacro")
    assert code == 2
    assert "needs arguments: mass (no default)" in err
    assert "--arg mass=VALUE" in err
    code, out, _ = cli("show", "robot.xacro", "--arg", "mass=3", "--arg", "name=tom")
    assert code == 0
    assert out.startswith("tom  1 joints on 'a', 3 kg move")
    code, out, _ = cli("show", "robot.xacro", "--arg", "mass=3")
    assert out.startswith("robby  1 joints")
    assert "argument 'name' is used before its <xacro:arg>" in out
    code, _, err = cli("show", "robot.urdf")
    assert code == 2
    assert "--xacro" in err
    assert cli("show", "robot.urdf", "--xacro", "--arg", "mass=3")[0] == 0
    assert cli("show", "robot.urdf", "--arg", "mass=3")[2].startswith("arguments are for xacro")
    assert "--arg takes words such as" in cli("show", "robot.xacro", "--arg", "mass")[2]
    view = ("view", "robot.urdf", "--xacro", "--arg", "mass=3", "--no-open", "--on-problem", "warn")
    assert cli(*view)[:2] == (0, "page: robot.html\n")
    assert "robby" in (tmp_path / "robot.html").read_text()
    assert "needs arguments" in cli("view", "robot.xacro", "--no-open")[2]


@pytest.mark.parametrize("node", ["MotorNode", "RobotArmNode", "EncoderNode", "MouseBrainNode"])
def test_show_tells_parameters_inputs_fluxes_and_equations(cli, node):
    code, out, err = cli("show", node)
    assert (code, err) == (0, "")
    for heading in ("parameters", "inputs", "fluxes", "equations", "assumptions"):
        assert heading in out
    if node == "MotorNode":
        assert re.search(r"r_ohm +Ω +required +>= 0 +R, armature resistance", out)
        assert re.search(r"commanded_voltage +scalar +V +replacive", out)


def test_a_graph_is_shown_as_text_and_drawn(cli, tmp_path):
    code, out, _ = cli("graph", "arm_with_rotor")
    assert code == 0
    assert "controller.joint_torques -> arm.commanded_joint_torques\n" in out
    assert "reaction_wrench_world -> arm.end_effector_wrench_world (of the step before)" in out
    assert cli("graph", "motor.toml", "--mermaid")[1].startswith("flowchart LR")
    assert cli("graph", "arm_with_rotor", "--out", "g.svg")[0] == 0
    assert "<svg" in (tmp_path / "g.svg").read_text()
    assert cli("graph", "arm_with_rotor", "--out", "g.png")[0] == 0
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")


def test_a_result_is_plotted_whole_or_by_field(cli, tmp_path):
    cli("run", "motor.toml", "--quiet", "--out", "here")
    assert cli("plot", "here/result.nc")[1] == "wrote here/result.png\n"
    words = (
        "plot",
        "here/result.nc",
        "rotor.current",
        "rotor.rotor_pose_world[0]",
        "--out",
        "p.svg",
    )
    assert cli(*words)[0] == 0
    assert "<svg" in (tmp_path / "p.svg").read_text()
    code, _, err = cli("plot", "here/result.nc", "rotor.curent")
    assert code == 2
    assert "did you mean 'current'?" in err
    assert cli("plot", "here/result.nc", "rotor.rotor_pose_world[9]")[0] == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(cli, shell):
    code, out, _ = cli("completion", shell)
    assert code == 0
    assert "new-node" in out
    assert "geared_motor_voltage" in out


def test_a_servo_is_shown_with_what_its_maker_does_not_say(cli):
    assert "sts3215_c001" in cli("list", "servos")[1]
    code, out, _ = cli("show", "xl330_m288")
    assert code == 0
    assert re.search(r"stall_torque_n_m +0.52 +N·m", out)
    assert "not published: rotor inertia, inductance, friction" in out
    assert re.search(r"duty_per_kp +0.002877 +1/rad +c_p", out)


def test_a_motor_and_a_scenario_are_shown(cli):
    code, out, _ = cli("show", "maxon_re40_148877")
    assert code == 0
    assert re.search(r"no_load_speed_rpm +7590 +rpm", out)
    assert re.search(r"damping_n_m_s +5.2044e-06 +N·m·s/rad +b, viscous damping", out)
    code, out, _ = cli("show", "motor_step")
    assert code == 0
    assert "  step -> motor.commanded_voltage\n" in out
    assert "rise time: rise_time of motor.rotor_angular_velocity" in out


def test_what_a_shell_offers_can_be_shown():
    from mime.commands.completion import names_by_command
    from mime.commands.show import shown_names

    known = shown_names()
    offered = names_by_command()["show"]
    of_mime = [name for name in known["node"] if name in dir(mime)]
    kinds = ("model", "motor", "servo", "scenario")
    assert sorted(offered) == sorted([*of_mime, *(name for kind in kinds for name in known[kind])])


def test_the_skeleton_of_a_node_is_written_once(cli, tmp_path):
    """It passes its own test: tests/packaging/test_wheel.py runs that."""
    assert cli("new-node", "TorsionSpring", "--out", "mine")[0] == 0
    files = {path.name for path in (tmp_path / "mine").iterdir()}
    assert files == {"torsion_spring.py", "test_torsion_spring.py", "torsion_spring.md"}
    code, _, err = cli("new-node", "torsion-spring", "--out", "mine")
    assert code == 2
    assert "already there, and not overwritten" in err


@pytest.mark.parametrize("name", bundled_scenarios())
def test_a_bundled_scenario_copied_out_is_the_same_simulation(cli, tmp_path, name):
    """With its robots too: the copies are found from any folder."""
    assert cli("new-scenario", "--from", name, "mine/plain.toml")[0] == 0
    plain = tmp_path / "mine" / "plain.toml"
    assert plain.read_bytes() == bundled_scenarios()[name].read_bytes()
    assert cli("new-scenario", "--from", name, "own/with_robot.toml", "--robots")[0] == 0
    own = tmp_path / "own" / "with_robot.toml"
    assert "model:" not in own.read_text()
    assert len(list((tmp_path / "own").glob("*.urdf"))) == ("model:" in plain.read_text())
    if name == "arm_3link_pd":
        first, second = (load_scenario(file).simulation for file in (plain, own))
        for a, b in zip(jax.tree.leaves(first.nodes), jax.tree.leaves(second.nodes), strict=True):
            np.testing.assert_array_equal(a, b)


def test_no_file_is_written_where_one_of_them_is_taken(cli, tmp_path):
    (tmp_path / "planar_arm_3link.urdf").write_text("mine")
    code, out, err = cli("new-scenario", "--from", "arm_3link_pd", "new.toml", "--robots")
    assert (code, out) == (2, "")
    assert err == "planar_arm_3link.urdf: already there, and not overwritten\n"
    assert (tmp_path / "planar_arm_3link.urdf").read_text() == "mine"
    assert not (tmp_path / "new.toml").exists()


def test_the_name_of_no_bundled_scenario_is_answered_with_all_of_them(cli, tmp_path):
    code, _, err = cli("new-scenario", "--from", "arm_3link", "new.toml")
    assert code == 2
    assert "arm_3link_pd" in err
    assert not (tmp_path / "new.toml").exists()


@pytest.mark.slow
def test_a_demo_runs_every_scenario_into_one_page(cli, tmp_path, monkeypatch):
    small = dict.fromkeys(("first", "second"), tmp_path / "motor.toml")
    monkeypatch.setattr("mime.scenarios.bundled.bundled_scenarios", lambda: small)
    code, out, _ = cli("demo", "--out", "demo")
    assert code == 0
    assert str(tmp_path / "demo" / "index.html") in out
    assert (tmp_path / "demo" / "overview.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "demo" / "index.html").read_text()
    for name in small:
        assert (tmp_path / "demo" / name / "report.html").is_file()
        assert f'href="{name}/report.html"' in page


def test_a_demo_goes_on_when_a_scenario_fails_and_says_which(cli, tmp_path, monkeypatch):
    wild = (
        (tmp_path / "motor.toml").read_text().replace("kt_n_m_per_a = 0.05", "kt_n_m_per_a = 1e9")
    )
    (tmp_path / "wild.toml").write_text(wild)
    both = {"wild": tmp_path / "wild.toml", "tame": tmp_path / "motor.toml"}
    monkeypatch.setattr("mime.scenarios.bundled.bundled_scenarios", lambda: both)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "index.html").write_text("mine")
    code, _, err = cli("demo", "--out", "demo")
    assert code == 2
    assert err.startswith("demo/index.html: not written by a run in this folder")
    (tmp_path / "demo" / "index.html").unlink()
    code, out, _ = cli("demo", "--out", "demo")
    assert code == 1
    assert out.endswith("failed: wild\n")
    page = (tmp_path / "demo" / "index.html").read_text()
    assert '<h2 id="wild">wild</h2><p>failed: rotor.' in page
    assert '<a href="#wild">wild</a></td><td><span class=outside>failed</span>' in page
    assert 'href="tame/report.html"' in page


def test_an_assembly_is_listed_and_its_keys_are_shown(cli):
    assert re.search(r"mouse +A maze-running mouse", cli("list", "assemblies")[1])
    code, out, _ = cli("show", "mouse")
    assert code == 0
    for row in (
        r"maze +required +a file, a drawing",
        r"maze\.rows +16 +3 to 32",
        r"range_noise_m +of the range sensors",
        r"race\.top_speed_m_per_s +on straights",
    ):
        assert re.search(row, out), row


def test_resuming_where_there_is_no_checkpoint_starts_anew(cli, tmp_path):
    assert cli("run", "motor.toml", "--quiet", "--out", "here", "--resume")[0] == 0
    assert Trajectory.load(tmp_path / "here" / "result.nc").time[-1] == pytest.approx(0.05)
