"""DLIO's training workloads on the emulated disk, through the kernel's readahead and `forerun mount`;
with --store on the emulated object store, through the mounts that there are of one.

    python bench/training.py ../target/release/forerun-bed ../target/release/forerun DLIO_BENCHMARK

DLIO reads a data set as a training job does; its accelerator is a sleep, so that the share of the
time in which it is busy (AU, accelerator utilisation) tells storage paths apart. Sizes are scaled to
a disk of 80 MB/s: at that rate the accelerator is just busy. One epoch, cold: what memory keeps from
one epoch to the next is not measured here.

Needs root, and DLIO 2.0 in an environment of its own:

    pip install --no-deps dlio_benchmark==2.0.0 pydftracer==1.0.2
    pip install h5py hydra-core mpi4py numpy omegaconf pandas Pillow psutil PyYAML tensorflow-cpu mpich
    pip install pydftracer==1.0.2
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import stores

COMMON = [
    "++workload.framework=tensorflow",
    "++workload.reader.data_loader=tensorflow",
    "++workload.workflow.checkpoint=False",
    "++workload.train.epochs=1",
]
# Seven samples of 3.7 MB are 0.32 s at 80 MB/s, the time of a step of the workload.
WORKLOADS = {
    "unet3d": [
        "workload=unet3d_h100",
        "++workload.dataset.record_length=3700000",
        "++workload.dataset.record_length_stdev=1700000",
        "++workload.dataset.record_length_resize=524288",
    ],
    # 400 samples of 115 kB are 0.57 s at 80 MB/s; the workload's own 0.224 s need 205 MB/s.
    "resnet50": [
        "workload=resnet50_h100",
        "++workload.dataset.num_files_train=32",
        "++workload.dataset.num_samples_per_file=200",
        "++workload.train.computation_time=0.58",
    ],
}
SIDES = ["kernel, 128 KiB", "kernel, 1024 KiB", "forerun mount"]
STORE_SIDES = list(stores.MOUNTS)
# At 160 and 320 MB/s the accelerator is just busy: the store gives 400, and two processors can decode as much
# when the files lie in memory.
STORE_STEPS = {
    "unet3d": "++workload.train.computation_time=0.162",
    "resnet50": "++workload.train.computation_time=0.145",
}


def called(command, **more):
    """The output of a command that must succeed."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    if ended.returncode != 0:
        raise SystemExit(f"{command[:3]}: {(ended.stdout + ended.stderr)[-2000:]}")
    return ended.stdout


def dlio(arguments, workload, folder, *more):
    """Runs DLIO in a folder of its own; its summary."""
    with tempfile.TemporaryDirectory() as place:
        command = [arguments.dlio, *WORKLOADS[workload], *COMMON]
        command += [f"++workload.dataset.data_folder={folder}/{workload}"]
        command += [f"++hydra.run.dir={place}/out", *more]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        # DLIO calls a tool of another data loader for indexes, which this one does not read.
        os.symlink(shutil.which("true"), f"{place}/tfrecord2idx")
        environment["PATH"] = f"{place}:{environment['PATH']}"
        called(command, cwd=place, env=environment, preexec_fn=before_others)
        summary = glob.glob(f"{place}/out/*summary.json")
        return json.load(open(summary[0])) if summary else None


def before_others():
    """Real-time priority, so that programs beside are not measured; below the disk's."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    except PermissionError:
        pass


def read_ahead(files, kib):
    """Sets the kernel's readahead for the disk that a folder is on."""
    device = os.stat(files).st_dev
    path = f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/queue/read_ahead_kb"
    with open(path, "w") as setting:
        setting.write(str(kib))


class Disk:
    """The data set on an emulated disk."""

    sides = SIDES

    def __init__(self, arguments, folder):
        self.arguments, self.state = arguments, f"{folder}/bed"
        self.mountpoint = f"{folder}/mount"
        os.mkdir(self.mountpoint)
        toml = os.path.join(os.path.dirname(__file__), "../../crates/bed/beds/training.toml")
        called([arguments.bed, "up", toml, "--state", self.state, "--copy", arguments.data])

    def run(self, side, workload):
        """The summary of one run."""
        files = f"{self.state}/files"
        called([self.arguments.bed, "cold", "--state", self.state])
        if side.startswith("kernel"):
            read_ahead(files, side.split()[1])
            return dlio(self.arguments, workload, files)
        forerun = self.arguments.forerun
        command = [forerun, "mount", files, self.mountpoint, "--memory", self.arguments.memory]
        mounted = subprocess.Popen(
            [*command, "--foreground"], stdout=subprocess.DEVNULL, preexec_fn=before_others
        )
        while not os.path.ismount(self.mountpoint):
            if mounted.poll() is not None:
                raise SystemExit(f"{command} ended")
            time.sleep(0.02)
        try:
            return dlio(self.arguments, workload, self.mountpoint)
        finally:
            called([forerun, "umount", self.mountpoint])
            mounted.wait()

    def end(self):
        called([self.arguments.bed, "down", "--state", self.state])


class ObjectStore:
    """The data set as objects of an emulated store."""

    sides = STORE_SIDES

    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        command = [arguments.bed, "store", "--files", arguments.data]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def run(self, side, workload):
        """The summary of one run."""
        job = {"each": None, "memory": None}
        mounted = stores.Mounted(side, self, job, self.folder, self.arguments.forerun)
        try:
            return dlio(self.arguments, workload, mounted.mountpoint, STORE_STEPS[workload])
        finally:
            mounted.end()

    def end(self):
        self.process.terminate()
        self.process.wait()


def numbers(summary):
    """Utilisation in percent, samples and megabytes a second."""
    metric = summary["metric"]
    return (
        metric["train_au_mean_percentage"],
        metric["train_throughput_mean_samples_per_second"],
        metric["train_io_mean_MB_per_second"],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bed", help="the binary forerun-bed")
    parser.add_argument("forerun", help="the binary forerun")
    parser.add_argument("dlio", help="the program dlio_benchmark")
    parser.add_argument("--workloads", default=",".join(WORKLOADS))
    parser.add_argument("--store", action="store_true", help="on an object store, not on a disk")
    parser.add_argument("--sides", help="only these, by their names, with semicolons")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--memory", default="256MiB", help="of forerun mount")
    parser.add_argument("--data", default="/dev/shm/forerun-training", help="kept from run to run")
    arguments = parser.parse_args()
    for name in ("bed", "forerun", "dlio"):
        setattr(arguments, name, os.path.abspath(getattr(arguments, name)))
    workloads = arguments.workloads.split(",")
    for workload in workloads:
        if not os.path.isdir(f"{arguments.data}/{workload}/train"):
            print(f"{workload}: generating", file=sys.stderr)
            making = ["++workload.workflow.generate_data=True", "++workload.workflow.train=False"]
            dlio(arguments, workload, arguments.data, *making)
    with tempfile.TemporaryDirectory() as folder:
        place = (ObjectStore if arguments.store else Disk)(arguments, folder)
        sides = arguments.sides.split(";") if arguments.sides else place.sides
        try:
            print("| workload | side | AU | least to most | samples/s | MB/s |")
            print("| --- | --- | --- | --- | --- | --- |")
            for workload in workloads:
                runs = {side: [] for side in sides}
                for _ in range(arguments.runs):
                    for side in sides:
                        runs[side].append(numbers(place.run(side, workload)))
                        print(f"{workload}, {side}: {runs[side][-1]}", file=sys.stderr)
                for side in sides:
                    au, samples, rate = zip(*runs[side])
                    cells = [workload, side, f"{statistics.median(au):.1f} %"]
                    cells += [f"{min(au):.1f} to {max(au):.1f}"]
                    cells += [f"{statistics.median(samples):.1f}", f"{statistics.median(rate):.1f}"]
                    print("| " + " | ".join(cells) + " |", flush=True)
        finally:
            place.end()


if __name__ == "__main__":
    main()
