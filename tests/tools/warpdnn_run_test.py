#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""warpdnn run: ours is what gets loaded, whatever the program asks for; what it says of other
libraries; exit statuses, signals and the terminal. Stand-in libraries are built here."""
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time

import warpdnn_tool as tool
from warpdnn_tool import BUILD, LIBRARY, SOURCE, TOOL, run

CPU = ["--device", "cpu"]

# Opens libraries by name or path, as frameworks do. `use` runs an operation on what was opened last.
FULL = r"""
#include <errno.h>
#include <sys/types.h>
int fallocate(int file, int mode, off_t from, off_t bytes)
{
    (void)file, (void)mode, (void)from, (void)bytes;
    errno = ENOSPC;
    return -1;
}
"""
OPENER = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <signal.h>
static void *last;
static void *f(const char *name) { void *s = dlsym(last, name); if (!s) { puts(name); exit(9); } return s; }
static void use(void)
{
    void *h = 0, *t = 0; float y[4] = {0}, v = 2;
    int bad = ((int (*)(void **))f("cudnnCreate"))(&h);
    bad |= ((int (*)(void **))f("cudnnCreateTensorDescriptor"))(&t);
    bad |= ((int (*)(void *, int, int, int, int, int, int))f("cudnnSetTensor4dDescriptor"))(t, 0, 0, 1, 1, 2, 2);
    bad |= ((int (*)(void *, void *, void *, const void *))f("cudnnSetTensor"))(h, t, y, &v);
    printf("version %zu bad %d\\n", ((size_t (*)(void))f("cudnnGetVersion"))(), bad);
    fflush(stdout);
}
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "use")) use();
        else if (!strcmp(argv[i], "kill")) { usleep(700000); kill(getpid(), SIGKILL); }
        else if (!strcmp(argv[i], "_exit")) { usleep(700000); _exit(0); }
        else if (!(last = dlopen(argv[i], RTLD_NOW))) { puts(dlerror()); return 8; }
    }
    return 0;
}
"""


def test_loading(t, w):
    plain = os.path.join(BUILD, "tests", "clients_plain")
    status, out, err = run([TOOL, "run", "--check", *CPU, "--", plain])
    t.check("a program on ours", status == 0 and "y[3] 2.5" in out, (status, out, err))
    t.check("ours did the work", "WarpDNN did the work of clients_plain (process " in err
            and "1 operation\n" in err and "another" not in err, err)
    t.check("the report of an error says nothing else", len(err.splitlines()) == 1, err)

    other = os.path.dirname(w.stand_in("other"))
    with open(os.path.join(SOURCE, "tests", "clients", "plain.c"), encoding="utf-8") as text:
        source = text.read()
    include = "-I" + os.path.join(SOURCE, "include")
    for name, flag in (("rpath", "-Wl,--disable-new-dtags"), ("runpath", "-Wl,--enable-new-dtags")):
        program = w.compile(name, source, include, os.path.join(other, "libcudnn.so.9"),
                            f"-Wl,-rpath,{other}", flag)
        status, out, err = run([program])
        t.check(f"{name}: without us the other one is loaded", "version 91300" in out, (out, err))
        status, out, err = run([TOOL, "run", "--check", *CPU, program])
        t.check(f"{name}: ours wins", status == 0 and "version 91900" in out
                and "did the work" in err, (status, out, err))
        # a folder before ours on LD_LIBRARY_PATH changes nothing
        status, out, err = run([TOOL, "run", "--check", *CPU, program], {"LD_LIBRARY_PATH": other})
        t.check(f"{name}: ours wins over LD_LIBRARY_PATH", status == 0 and "version 91900" in out, err)
        status, out, err = run([TOOL, "run", "--check", *CPU, program],
                               {"LD_PRELOAD": os.path.join(other, "libcudnn.so.9")})
        t.check(f"{name}: ours wins over LD_PRELOAD", "version 91900" in out, (out, err))


def test_opening(t, w):
    opener = w.compile("opener", OPENER, "-ldl")
    other = w.stand_in("other")
    os.symlink("libcudnn.so.9", w.path("other", "libcudnn.so"))
    ahead = {"LD_LIBRARY_PATH": os.path.dirname(other)}
    for name in ("libcudnn.so.9", "libcudnn.so"):
        status, out, err = run([TOOL, "run", "--check", *CPU, opener, name, "use"], ahead)
        t.check(f"dlopen({name}) gets ours", status == 0 and "version 91900 bad 0" in out, (out, err))

    # as PyTorch and JAX do: the other one by its path, then the work by name
    status, out, err = run([TOOL, "run", "--check", *CPU, opener, other, "libcudnn.so.9", "use"])
    t.check("another one opened and not used", status == 0 and "version 91900" in out
            and f"opened another cuDNN too, and did not use it: {other}" in err, (status, out, err))

    parted = w.stand_in("parted", body='static const char *volatile part = "libcudnn_graph.so.9";')
    status, out, err = run([TOOL, "run", *CPU, opener, parted])
    t.check("another one without its parts did not work", status == 0 and "executed nothing" in err
            and f"did not use it: {parted}" in err and "may have worked" not in err, (status, err))
    status, out, err = run([TOOL, "run", *CPU, opener, other])
    t.check("one that has no parts may have", "may have worked" in err and other in err, err)

    status, out, err = run([TOOL, "run", *CPU, opener, other, "use"])
    t.check("another one used: status is the command's", status == 0 and "version 91300" in out, out)
    t.check("another one used: it is said", "executed nothing" in err and
            f"another cuDNN may have worked in opener (process " in err and other in err, err)
    status, out, err = run([TOOL, "run", "--check", *CPU, opener, other, "use"])
    t.check("another one used: --check fails", status == 125 and "--check" in err, (status, err))

    part = w.library("other/libcudnn_ops.so.9", "int wd_test_part(void) { return 1; }",
                     "libcudnn_ops.so.9")
    status, out, err = run([TOOL, "run", "--check", *CPU, opener, part, "libcudnn.so.9", "use"])
    t.check("parts of another one", status == 125 and "did the work" in err
            and "another cuDNN may have worked" in err and part in err, (status, err))
    status, out, err = run([TOOL, "run", "--check", "--quiet", *CPU, opener, "libcudnn.so.9", "use"])
    t.check("--quiet is quiet", status == 0 and err == "", (status, err))
    status, out, err = run([TOOL, "run", "--quiet", *CPU, opener, other, "use"])
    t.check("--quiet says what is wrong", "another cuDNN may have worked" in err, err)

    copy = w.make_folder("copy")
    shutil.copy(LIBRARY, os.path.join(copy, "libcudnn.so.9"))
    status, out, err = run([TOOL, "run", *CPU, opener, os.path.join(copy, "libcudnn.so.9"), "use"])
    t.check("another copy of WarpDNN is told", "(another copy of WarpDNN)" in err, err)

    status, out, err = run([TOOL, "run", *CPU, opener, "libcudnn.so.9", "use", "kill"])
    t.check("a killed program", status == -signal.SIGKILL and "ended without a report" in err
            and "opener" in err, (status, err))
    status, out, err = run([TOOL, "run", "--check", *CPU, opener, "libcudnn.so.9", "use", "_exit"])
    t.check("_exit leaves no report, and --check wants one", status == 125
            and "ended without a report" in err, (status, err))

    status, out, err = run([TOOL, "run", "--check", *CPU, "sh", "-c",
                            f"true; '{opener}' libcudnn.so.9 use; true"])
    t.check("a grandchild", status == 0 and "did the work of opener" in err, (status, err))
    status, out, err = run([TOOL, "run", "--check", *CPU, "sh", "-c",
                            f"for i in 1 2 3 4 5 6 7 8; do '{opener}' libcudnn.so.9 use; done"])
    t.check("many workers are counted", status == 0 and err.count("did the work of opener") == 5
            and "and of 3 more processes" in err, err)

    if os.path.exists(tool.CUDA_LIBRARY):
        real = os.path.realpath(tool.CUDA_LIBRARY)
        status, out, err = run([TOOL, "run", *CPU, opener, tool.CUDA_LIBRARY, "libcudnn.so.9", "use"])
        t.check("NVIDIA's opened, ours used", status == 0 and "version 91900 bad 0" in out
                and "did the work of opener" in err and real in err, (status, out, err))
    else:
        t.skip("NVIDIA's library is not installed")


def test_nothing(t, w):
    status, out, err = run([TOOL, "run", "--", "true"])
    t.check("a program without cuDNN", status == 0
            and "WarpDNN was loaded into 1 process and executed nothing" in err, (status, err))
    status, out, err = run([TOOL, "run", "--check", "true"])
    t.check("--check wants work", status == 125, (status, err))
    status, out, err = run([TOOL, "run", "--check", "sh", "-c", "exit 7"])
    t.check("--check keeps the command's failure", status == 7, (status, err))
    try:
        static = w.compile("static", "#include <unistd.h>\nint main(void) { usleep(100000); return 5; }",
                           "-static")
        status, out, err = run([TOOL, "run", static])
        t.check("a static program", status == 5 and "no process was seen with WarpDNN" in err, err)
    except subprocess.CalledProcessError:
        t.skip("static programs cannot be linked here")


def test_statuses(t, w):
    for want in (0, 1, 3, 124, 125, 126, 255):
        status, _, err = run([TOOL, "run", "sh", "-c", f"exit {want}"])
        t.check(f"status {want}", status == want, (status, err))
    no_program = w.write("no_program", "text\n")
    bad_program = w.write("bad_program", b"\x7fELF nothing more", 0o755)
    script = w.write("script", "echo a script; exit 4\n", 0o755)
    for name, command, want, words in (
            ("not there", ["no-such-command-here"], 127, "No such file"),
            ("not there by path", ["/no/such/command"], 127, "No such file"),
            ("a folder", ["/"], 126, "Permission denied"),
            ("not executable", [no_program], 126, "Permission denied"),
            ("no ELF", [bad_program], 126, "Exec format error"),
            ("a script without #!", [script], 4, "")):
        status, _, err = run([TOOL, "run", "--", *command])
        t.check(f"command {name}", (status == want or (name == "no ELF" and status in (126, 127, 2)))
                and (words in err or name == "no ELF"), (status, err))
    for name, arguments, words in (
            ("unknown option", ["--fast", "true"], "unknown option '--fast'"),
            ("no command", [], "no command"),
            ("no command after --", ["--"], "no command"),
            ("bad device", ["--device", "tpu", "true"], "--device tpu: must be auto, gpu or cpu"),
            ("bad device with =", ["--device=", "true"], "must be auto"),
            ("no device", ["--device"], "--device needs a value")):
        status, out, err = run([TOOL, "run", *arguments])
        t.check(name, status == 125 and words in err and not out, (status, err))
    status, out, _ = run([TOOL, "run", "--help"])
    t.check("help", status == 0 and "--device" in out, out)
    status, out, _ = run([TOOL, "run", "printf", "%s", "--check"])
    t.check("options of the command are its own", status == 0 and out == "--check", out)


def test_environment(t, w):
    status, out, _ = run([TOOL, "run", "--device=cpu", "sh", "-c", "echo $WARPDNN_DEVICE $LD_PRELOAD"],
                         {"LD_PRELOAD": "libm.so.6 :libcudnn.so.8", "WARPDNN_DEVICE": "gpu"})
    words = out.split()
    t.check("--device and LD_PRELOAD", len(words) == 2 and words[0] == "cpu"
            and words[1].split(":") == ["libm.so.6", os.path.realpath(LIBRARY),
                                        os.path.join(os.path.dirname(os.path.realpath(LIBRARY)),
                                                     "libwarpdnn_run.so")], out)
    status, out, _ = run([TOOL, "run", "sh", "-c", "echo $WARPDNN_DEVICE,$LD_LIBRARY_PATH"])
    t.check("no trailing colon, no device", out.strip() == "," + os.path.dirname(os.path.realpath(LIBRARY)),
            out)
    folder = w.make_folder("temporary")
    status, out, err = run([TOOL, "run", "sh", "-c", 'ls "$TMPDIR"'], {"TMPDIR": folder})
    t.check("a folder while it runs", out.startswith("warpdnn-run-"), out)
    t.check("and none after", os.listdir(folder) == [], os.listdir(folder))
    run([TOOL, "run", "no-such-command-here"], {"TMPDIR": folder})
    t.check("none after a failure", os.listdir(folder) == [], os.listdir(folder))
    status, out, err = run([TOOL, "run", "sh", "-c", "exit 6"], {"TMPDIR": "/no/such/folder"})
    t.check("no folder for the report", status == 6 and "no folder can be made" in err, (status, err))
    t.check("what is not known then", "it is not known what WarpDNN executed" in err, err)
    full = w.compile("full", FULL, "-shared", "-fPIC")
    status, out, err = run([TOOL, "run", "sh", "-c", "exit 6"], {"TMPDIR": folder, "LD_PRELOAD": full})
    t.check("no room for the report", status == 6 and "No space left" in err and os.listdir(folder) == [], (status, err))
    status, out, err = run([TOOL, "run", "cat"], input=b"through")
    t.check("standard input", status == 0 and out == "through", out)
    opener = w.compile("opener", OPENER, "-ldl")
    status, out, err = run([TOOL, "run", "--check", *CPU, opener, "libcudnn.so.9", "use"],
                           stdin=subprocess.DEVNULL, close_fds=True)
    t.check("no standard input", status == 0, err)


def test_inherited(t, w):
    """What a command finds is what it would find without us, but for what run says that it changes."""
    look = [sys.executable, "-c", """
import json, os, signal
state = dict(line.split(":", 1) for line in open("/proc/self/status", encoding="ascii") if ":" in line)
print(json.dumps({"environment": dict(os.environ), "files": sorted(os.listdir("/proc/self/fd")),
                  "group": os.getpgrp(), "folder": os.getcwd(), "nice": os.nice(0), "mask": os.umask(0),
                  **{key: state[key].strip() for key in ("SigBlk", "SigIgn", "SigCgt")}}))
"""]
    changes = {"LD_PRELOAD", "LD_LIBRARY_PATH", "WARPDNN_RUN_REPORT"}
    for name, environment in (("nothing", {}), ("something", {"LD_LIBRARY_PATH": "/a:/b", "WARPDNN_THREADS": "1"})):
        _, out, _ = run(look, environment)
        plain = json.loads(out)
        status, out, err = run([TOOL, "run", *look], environment)
        ours = json.loads(out)
        differ = {key for key in ours["environment"].keys() | plain["environment"].keys()
                  if ours["environment"].get(key) != plain["environment"].get(key)}
        t.check(f"{name} set: run changes three variables", differ == changes, differ)
        for what in plain.keys() - {"environment"}:
            t.check(f"{name} set: {what}", ours[what] == plain[what], (ours[what], plain[what]))
    report = ours["environment"]["WARPDNN_RUN_REPORT"]
    t.check("what was on the path stays behind ours", ours["environment"]["LD_LIBRARY_PATH"]
            == os.path.dirname(os.path.realpath(LIBRARY)) + ":/a:/b", ours["environment"])
    t.check("the report is gone", not os.path.exists(report), report)
    # a child that throws its environment away is a plain program again
    status, out, err = run([TOOL, "run", "env", "-i", *look])
    ours = json.loads(out)
    t.check("a cleaned environment stays clean", status == 0 and not changes & ours["environment"].keys(), out)


def test_nested(t, w):
    """A run inside a run: each knows what was executed."""
    opener = w.compile("opener", OPENER, "-ldl")
    work = [opener, "libcudnn.so.9", "use"]
    status, _, err = run([TOOL, "run", "--check", *CPU, TOOL, "run", "--check", "--quiet", *work])
    t.check("the outer one counts too", status == 0 and err.count("did the work of opener") == 1
            and "executed nothing" not in err, (status, err))
    status, _, err = run([TOOL, "run", "--check", "--quiet", *CPU, "sh", "-c",
                          '"$@" && "$@"', "sh", TOOL, "run", "--quiet", *work])
    t.check("two inner ones", status == 0 and err == "", (status, err))
    other = w.stand_in("other")
    status, _, err = run([TOOL, "run", "--check", *CPU, TOOL, "run", opener, other, "use"])
    t.check("another cuDNN is told by both", status == 125 and err.count("another cuDNN may have worked in opener") == 2,
            (status, err))
    status, out, _ = run([TOOL, "run", TOOL, "run", "sh", "-c", "echo $LD_PRELOAD; echo $LD_LIBRARY_PATH"])
    t.check("nothing stands twice", len(out.splitlines()) == 2
            and all(len(set(line.split(":"))) == len(line.split(":")) for line in out.splitlines()), out)
    status, _, err = run([TOOL, "run", *CPU, "sh", "-c", f"WARPDNN_RUN_REPORT=/no/such/report '{TOOL}' run true"])
    t.check("an outer report that is gone", status == 0, (status, err))
    status, _, err = run([TOOL, "run", "--check", *CPU, "timeout", "5", *work])
    t.check("behind another launcher", status == 0 and "did the work of opener" in err, (status, err))


def start(*arguments, **more):
    return subprocess.Popen([TOOL, "run", *arguments], env=tool.clean_environment(),
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)


def test_signals(t, w):
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT):
        status, _, err = run([TOOL, "run", "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$"])
        t.check(f"death by {number.name}", status == -number, (status, err))

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT):
        process = start("sh", "-c", f"trap 'echo got; exit 9' {int(number)}; echo ready; "
                        "while :; do sleep 0.05; done")
        process.stdout.readline()
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        t.check(f"{number.name} goes on", process.returncode == 9 and out == b"got\n",
                (process.returncode, out, err))

    process = start("sh", "-c", "echo ready; sleep 30")
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=35)
    t.check("SIGTERM ends both", process.returncode == -signal.SIGTERM, process.returncode)

    # once, and only to the command
    process = start("sh", "-c", "trap 'echo got' INT; echo ready; i=0; while [ $i -lt 20 ]; do sleep 0.05; i=$((i+1)); "
                    "done; exit 3", start_new_session=True)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    t.check("SIGINT that the command survives", process.returncode == 3 and out == b"got\n",
            (process.returncode, out, err))
    process = start("sleep", "30")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=35)
    t.check("SIGINT ends both", process.returncode == -signal.SIGINT, process.returncode)

    process = start("sh", "-c", "trap '' HUP; echo ready; sleep 0.4; exit 3")
    process.stdout.readline()
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    t.check("what the command ignores", process.returncode == 3, process.returncode)

    process = start("sh", "-c", "echo $$; kill -STOP $$; exit 4")
    child = int(process.stdout.readline())
    pid, status = os.waitpid(process.pid, os.WUNTRACED)
    t.check("its stop is ours", pid == process.pid and os.WIFSTOPPED(status), status)
    os.kill(process.pid, signal.SIGCONT)
    process.communicate(timeout=30)
    t.check("and it goes on", process.returncode == 4, (process.returncode, child))


def test_terminal(t, w):
    """^C in a terminal reaches the command once, not twice."""
    program = w.compile("counter", """
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
static volatile sig_atomic_t count;
static void on(int s) { count++; }
int main(void) { signal(SIGINT, on); write(1, "ready\\n", 6);
  for (int i = 0; i < 60 && !count; ++i) usleep(100000);
  for (int i = 0; i < 5; ++i) usleep(100000);
  return 40 + count; }
""")
    try:
        pid, terminal = pty.fork()
    except OSError as why: # a folder for chroot without devpts, say
        t.skip(f"no terminals here: {why}")
        return
    if pid == 0:
        os.execve(TOOL, [TOOL, "run", program], tool.clean_environment())
    seen = b""
    while b"ready" not in seen:
        seen += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    t.check("^C comes once", os.WIFEXITED(status) and os.WEXITSTATUS(status) == 41, status)


def test_places(t, w):
    alone = w.make_folder("alone", "bin")
    lonely = shutil.copy(TOOL, alone)
    status, _, err = run([lonely, "run", "true"])
    t.check("no library", status == 125 and "the library is missing; looked for" in err, (status, err))
    w.stand_in("alone/lib")
    status, _, err = run([lonely, "run", "true"])
    t.check("another libcudnn in the place of ours", status == 125 and "not WarpDNN" in err, err)
    status, _, err = run([lonely, "bench"])
    t.check("no bench", status == 125 and "warpdnn_bench is neither" in err, (status, err))

    blank = w.make_folder("with blank", "bin")
    shutil.copytree(os.path.dirname(os.path.realpath(LIBRARY)), w.path("with blank", "lib"),
                    symlinks=True, ignore=shutil.ignore_patterns("*.a"))
    status, _, err = run([shutil.copy(TOOL, blank), "run", "true"])
    t.check("a blank in the path", status == 125 and "LD_PRELOAD cannot name" in err, (status, err))

    bench = os.path.join(BUILD, "bench", "warpdnn_bench")
    status, out, err = run([TOOL, "bench", "--help"])
    if os.path.exists(bench):
        t.check("bench is warpdnn_bench", status != 125 and "warpdnn_bench" in out + err, (status, err))
    else:
        t.check("bench is not built", status == 125, (status, err))

    status, out, err = run([TOOL])
    t.check("no command", status == 125 and "doctor" in err, err)
    status, out, err = run([TOOL, "cure"])
    t.check("unknown command", status == 125 and "no command 'cure'" in err, err)
    status, out, err = run([TOOL, "--version"])
    t.check("version", status == 0 and out.startswith("WarpDNN "), out)
    status, out, err = run(["ldd", TOOL])
    t.check("the command links no libcudnn", "libcudnn" not in out, out)


def test_crowd(t, w):
    begin = time.monotonic()
    status, out, err = run([TOOL, "run", "sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"])
    t.check("two hundred processes", status == 0 and "loaded into 201 processes" in err, (status, err))
    t.check("in a reasonable time", time.monotonic() - begin < 30, time.monotonic() - begin)


def main():
    # what a shell started in the background ignores its children do too
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    t = tool.Checks()
    tool.stop_without(t)
    for part in (test_loading, test_opening, test_nothing, test_statuses, test_environment, test_inherited,
                 test_nested, test_signals, test_terminal, test_places, test_crowd):
        with tool.World() as w:
            part(t, w)
    return t.finish()


if __name__ == "__main__":
    sys.exit(main())
