//! Help texts: read first by users, so a change to them should be seen.

use snapbox::str;

use super::{forerun, output_of};

#[test]
fn help_of_help_is_the_overview() {
    let overview = output_of("help");
    for line in ["help --help", "help -h"] {
        assert_eq!(output_of(line), overview, "{line}");
    }
}

#[test]
fn the_overview() {
    forerun("--help").success().stdout_eq(str![[r#"
Makes slow storage read fast: mounts a directory whose files are read ahead

Usage: forerun <COMMAND>

Commands:
  try          Measure with your own files whether forerun helps here
  tune         Find, try and set the best constant read-ahead of a device
  mount        Mount a directory whose files are read ahead for any program
  umount       Take a mount off its path
  top          Show running mounts and watches in the terminal
  ctl          Ask a running mount or watch, or change its limits
  doctor       Check this machine and its mounts, and say what to do
  watch        Let the kernel read ahead as far as forerun would, without a mount
  read         Write files to standard output, read ahead
  profile      Measure the switching cost and transfer rate of a device
  layout       Show the devices, strips and extents of a file
  bench        Compare presets, and the kernel, on a workload
  simulate     Run presets over a trace or a workload on modelled disks, in virtual time
  sweep        Run the simulations of a plan as rows of a file; stopped, it goes on
  rerun        Make rows of a sweep once more, and compare them
  report       Show rows of other commands as a page of figures and answers
  advise       Say which preset and how much memory suit the reads of a trace
  trace        Look into a trace, or write it in another format
  replay       Replay the decisions of a journal and compare them
  explain      Explain a message: its cause, and what to do
  list         List presets, methods, devices, backends and trace formats
  version      Print the version, and the parts of this binary
  completions  Print a completion script for a shell
  man          Print a manual page
  help         Print this message or the help of the given subcommand(s)

Options:
  -h, --help     Print help
  -V, --version  Print version

Sizes: 64KiB, 1MiB, 100MB (KiB = 1024, kB = 1000; 1G = 1GiB). Durations: 8ms. Rates: 80MB/s.
Exit codes: 0 done, 1 tried and failed, 2 cannot be tried.
FORERUN_LOG=debug in the environment logs details on stderr.

To begin with:
  forerun try /data              does it help with these files?
  forerun mount /data /fast      then read below /fast
  forerun top                    watch it work
  forerun umount /fast

"#]]);
}

#[test]
fn without_a_command_the_overview_is_shown_and_nothing_done() {
    forerun("").code(2).stdout_eq("");
}

#[test]
fn read() {
    forerun("read -h").success().stdout_eq(str![[r#"
Write files to standard output, read ahead

Usage: forerun read [OPTIONS] <FILE>...

Arguments:
  <FILE>...  The files or objects to read, one after the other; an address that ends in / stands for
             the objects directly below it, and the files of a directory are named, as by DIR/*

Options:
      --memory <SIZE>        Memory for everything: blocks, buffers in flight and bookkeeping
                             [default: 256MiB]
      --offset <SIZE>        Offset of the first byte in each file; past its end is nothing, not an
                             error [default: 0]
      --anonymous            Sign no request to a store, whatever credentials there are
      --length <SIZE>        Bytes to read of each file at most [default: to its end]
      --longest-wait <TIME>  Longest wait for a turn among many readers, 1ms to 1h; longer switches
                             less [default: 3s]
      --profile <FILE>       Profile of the device to begin with, as `forerun profile` writes it
      --profile-fixed        Use the profile's figures without measuring
      --stripe <ARRAY>       The array of the files, if it is not detected or differs:
                             strip=64KiB,disks=4, with raid10, raid5 or raid6 behind it
      --read-bytes <SIZE>    Bytes of each request [default: 128KiB]
      --stats                Print the counters to standard error at the end; blocks of 4 KiB unless
                             the name says otherwise
  -h, --help                 Print help (see more with '--help')

Research:
      --preset <NAME>      Named composition of methods (see `forerun list presets`) [default: once]
      --detect <METHOD>    Detect method in place of the preset's, as name or name(param=value,..)
      --depth <METHOD>     Depth method in place of the preset's, as name or name(param=value,..)
      --shape <METHOD>     Shape method in place of the preset's, as name or name(param=value,..)
      --dispatch <METHOD>  Dispatch method in place of the preset's, as name or name(param=value,..)
      --reclaim <METHOD>   Reclaim method in place of the preset's, as name or name(param=value,..)
      --measure <METHOD>   Measure method in place of the preset's, as name or name(param=value,..)
      --emulate <COST>     Emulate a device of this cost: switching=8ms,rate=80MB/s[,servers=1];
                           with disks=4,strip=64KiB an array of them, and with raid10, raid5 or
                           raid6 one of another layout than RAID-0
      --backend <NAME>     Backend that reads the device (see `forerun list backends`) [default: the
                           best that works]
      --journal <FILE>     Record every decision to this file, for `forerun replay`

"#]]);
}

#[test]
fn profile() {
    forerun("profile -h").success().stdout_eq(str![[r#"
Measure the switching cost and transfer rate of a device

Usage: forerun profile [OPTIONS] <PATH>

Arguments:
  <PATH>  A large file, a block device, or an object by its address

Options:
  -o, --output <FILE>  Write the profile to this file, for --profile
      --anonymous      Sign no request to a store, whatever credentials there are
  -h, --help           Print help (see more with '--help')

"#]]);
}

#[test]
fn bench() {
    forerun("bench -h").success().stdout_eq(str![[r#"
Compare presets, and the kernel, on a workload

Usage: forerun bench [OPTIONS] [DIR|FILE]...

Arguments:
  [DIR|FILE]...  Files or objects to read, or one directory to make files in, where they stay for
                 the next bench; without, content comes from the seed. An address that ends in /
                 stands for the objects directly below it: they are read, and none is made

Options:
      --preset <A,B,..>  Presets to compare, with commas between; `kernel` is plain buffered reads,
                         cold [default: forerun]
      --runs <N>         Runs of each preset, in turns; the median run is printed [default: 1]
      --clock <CLOCK>    Real time, or the simulator's virtual time on the emulated device [default:
                         real] [possible values: real, virtual]
      --format <FORMAT>  Output format [default: table] [possible values: table, csv, json]
      --disks <N>        Number of emulated devices; files lie on them in turn [default: 1]
      --hinted <METHOD>  The method that follows hints in place of the preset's, as name or
                         name(param=value,..), or none
  -h, --help             Print help (see more with '--help')

Workload:
      --readers <N>          Number of readers, each with an open file of its own [default: one a
                             FILE, with --hints one a disk]
      --shared               All readers read the same file instead of one each
      --file-bytes <SIZE>    Size of each file, where it is not given by a FILE [default: 100MB]
      --read-bytes <SIZE>    Bytes of each read [default: 64KiB]
      --pattern <NAME>       Order in which a reader reads its file, as name or
                             name(param=value,..); `shuffled` is one process that reads all files
                             [default: sequential, with --hints shuffled]
      --workload <NAME>      Run a whole workload of the simulator, with its files and processes, as
                             name or name(param=value,..) (see `forerun list workloads`)
      --hints                Announce all reads, in their order, before the first
      --wrong-percent <N>    Percentage of hints that name another place of the same file [default:
                             0]
      --missing-percent <N>  Percentage of reads without a hint [default: 0]
      --think <TIME>         Time a reader computes between two reads [default: 0ns]
      --seed <N>             Seed of the generated content and the random patterns [default: 1]

Engine:
      --memory <SIZE>        Memory for everything: blocks, buffers in flight and bookkeeping
                             [default: 256MiB]
      --detect <METHOD>      Detect method in place of the preset's, as name or name(param=value,..)
      --depth <METHOD>       Depth method in place of the preset's, as name or name(param=value,..)
      --shape <METHOD>       Shape method in place of the preset's, as name or name(param=value,..)
      --dispatch <METHOD>    Dispatch method in place of the preset's, as name or
                             name(param=value,..)
      --longest-wait <TIME>  Longest wait for a turn among many readers, 1ms to 1h; longer switches
                             less [default: 3s]
      --reclaim <METHOD>     Reclaim method in place of the preset's, as name or
                             name(param=value,..)
      --measure <METHOD>     Measure method in place of the preset's, as name or
                             name(param=value,..)

Storage:
      --profile <FILE>  Profile of the device to begin with, as `forerun profile` writes it
      --profile-fixed   Use the profile's figures without measuring
      --emulate <COST>  Emulate a device of this cost: switching=8ms,rate=80MB/s[,servers=1]; with
                        disks=4,strip=64KiB an array of them, and with raid10, raid5 or raid6 one of
                        another layout than RAID-0
      --stripe <ARRAY>  The array of the files, if it is not detected or differs:
                        strip=64KiB,disks=4, with raid10, raid5 or raid6 behind it
      --anonymous       Sign no request to a store, whatever credentials there are
      --backend <NAME>  Backend that reads the device (see `forerun list backends`) [default: the
                        best that works]
      --journal <FILE>  Record every decision to this file, for `forerun replay`

"#]]);
}

#[test]
fn replay() {
    forerun("replay -h").success().stdout_eq(str![[r#"
Replay the decisions of a journal and compare them

Usage: forerun replay <JOURNAL>

Arguments:
  <JOURNAL>  A journal written by `mount --journal`, `read --journal` or `bench --journal`

Options:
  -h, --help  Print help (see more with '--help')

"#]]);
}

#[test]
fn list() {
    forerun("list -h").success().stdout_eq(str![[r#"
List presets, methods, devices, backends and trace formats

Usage: forerun list [OPTIONS] [WHAT]

Arguments:
  [WHAT]  A part (presets, methods, devices, backends, hinted, schedulers, workloads, policies,
          formats), or the name of an entry, with its differences from its paper [default:
          everything]

Options:
      --format <FORMAT>  Output format [default: table] [possible values: table, json]
  -h, --help             Print help (see more with '--help')

"#]]);
}

#[test]
fn the_long_help_names_every_method_and_pattern_with_its_parameters() {
    let help = output_of("bench --help");
    for word in [
        "ondemand",
        "growing",
        "alpha_percent=25 (0 to 100)",
        "lru",
        "strided",
        "backward",
    ] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
}

#[test]
fn the_version() {
    forerun("--version").success().stdout_eq(str![[r#"
forerun 0.1.0

"#]]);
}
