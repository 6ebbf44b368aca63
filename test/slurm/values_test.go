package slurmtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/spec/sbatch"
)

// lines are directives to compare one by one, good ones and bad ones. A line break
// separates the lines of one script.
var lines = []string{
	// times
	"-t 5", "-t 0", "-t 90", "-t 1:30", "-t 1:2:3", "-t 0:0:1", "-t 2-0", "-t 2-3", "-t 2-3:04", "-t 2-3:04:05", "-t 100:00:00",
	"-t UNLIMITED", "-t infinite", "-t INFINITE", "-t -1", "-t -5", "-t 5m", "-t 1h", "-t 1:2:3:4", "-t 1-2-3", "-t 1.5", "-t ''",
	"-t 1-", "-t -1:00", "-t :30", "-t 30:", "-t 1::2", "-t 0-0:0:30", "-t 99999999", "-t 9999999999999", "-t 1-2:3:4:5", "-t 00-24:60:60",
	"-t ' 5'", "-t '5 '", "-t 5 --time-min=3", "-t 5 --time-min=9", "--time-min=9", "--time-min=x", "-t 0:90", "-t 61:61",
	// memory
	"--mem=100", "--mem=100M", "--mem=100MB", "--mem=100mb", "--mem=2G", "--mem=2GB", "--mem=2g", "--mem=1T", "--mem=2048K", "--mem=1500K", "--mem=1K",
	"--mem=0", "--mem=1.5G", "--mem=4GiB", "--mem=G", "--mem=-1", "--mem=4X", "--mem=", "--mem=4 G", "--mem='4 G'", "--mem=9999999", "--mem=4Gx",
	"--mem-per-cpu=100", "--mem-per-cpu=1G -c4", "--mem-per-cpu=1G -n4 -c2", "--mem-per-cpu=0", "--mem-per-cpu=x", "--mem=1G --mem-per-cpu=1G",
	"--mem-per-gpu=1G --gpus=1", "--mem-per-gpu=1G", "--mem-per-gpu=x --gpus=1", "--mem=1G --mem-per-gpu=1G --gpus=1", "--tmp=10G", "--tmp=100", "--tmp=x", "--tmp=1P",
	// nodes and tasks
	"-N 2", "-N 2-4", "-N 4-2", "-N 2-", "-N -2", "-N 0", "-N x", "-N 2x", "-N 2k", "-N 1,3", "-N 1-15:4", "-N ''", "-N 2.5", "-N 1-2-3", "-N 02", "-N +2",
	"-N 1k -p main", "-n 4", "-n 0", "-n -1", "-n x", "-n 4.5", "-n 4x", "-n ''", "-n 4k", "-n 04", "-n 99999999999", "-N2 -n 1", "-N2 -n 5", "-N 2-4 -n 3",
	"--ntasks-per-node=4", "--ntasks-per-node=4 -N2", "--ntasks-per-node=4 -n8", "--ntasks-per-node=4 -n8 -N2", "--ntasks-per-node=4 -n10 -N2", "--ntasks-per-node=4 -n8 -N1-3", "--ntasks-per-node=4 -n8 -N1-8",
	"--ntasks-per-node=0", "--ntasks-per-node=-1", "--ntasks-per-node=x", "--tasks-per-node=2 -N1", "--ntasks-per-node=4 -n2 -N1", "-c 4", "-c 0", "-c -1", "-c x", "-c 2 -n 3 -N 1",
	"--mincpus=4", "--mincpus=x", "--ntasks-per-socket=2", "--ntasks-per-core=1", "--ntasks-per-gpu=2 --gpus=2", "--ntasks-per-gpu=2 -n4", "--ntasks-per-gpu=2",
	"--ntasks-per-gpu=x --gpus=1", "-O -n4", "-n 4 --exclusive", "--exclusive=user", "--exclusive=mcs", "--exclusive=x", "-s", "-s --exclusive", "--exclusive -s", "--contiguous -N2",
	// GPUs and other generic resources
	"--gres=gpu", "--gres=gpu:2", "--gres=gpu:a100", "--gres=gpu:a100:2", "--gres=gpu:a100:2,gpu:v100:1", "--gres=gpu:0", "--gres=gpu:-1", "--gres=gpu:x:y", "--gres=gpu:a100:x",
	"--gres=gpu=2", "--gres=gres:gpu:2", "--gres=gres/gpu:2", "--gres=nvme:100", "--gres=nvme:2k", "--gres=gpu:1,nvme:100", "--gres=nosuch:1", "--gres=gpu:nosuch:1", "--gres=none", "--gres=", "--gres=gpu:1 --gres=gpu:2",
	"--gpus=2", "--gpus=a100:2", "--gpus=a100:1,v100:1", "--gpus=0", "--gpus=x", "--gpus=-1", "--gpus=2.5", "--gres=gpu:2.5", "--gres=gpu:1.x", "--gres=gpu:a.5", "-o NONE -e none -i None", "-e none", "--gpus=a100", "-G 3", "-G3", "--gpus-per-node=2 -N2", "--gpus-per-node=a100:2", "--gpus-per-node=0", "--gpus-per-node=x",
	"--gpus-per-task=1 -n2", "--gpus-per-task=1", "--gpus-per-task=2 --gpus=4", "--gpus-per-task=2 --gpus=3", "--gpus-per-task=2 --gpus=4 -n2", "--gpus-per-task=2 --gpus=4 -n3", "--gpus-per-task=x -n1", "--gpus-per-socket=1 --sockets-per-node=2", "--gpus-per-socket=1",
	"--gpus=4 --gpus-per-node=2", "--gpus=4 --gpus-per-node=2 -N2", "--gpus=4 --gpus-per-node=2 -N1", "--gpus=3 --gpus-per-node=2", "--gres=gpu:2 --gpus-per-node=2", "--gres=gpu:2 --gpus=2", "--gpus=2 --cpus-per-gpu=4", "--cpus-per-gpu=4", "--cpus-per-gpu=x --gpus=1", "--cpus-per-gpu=2 -c2 --gpus=1", "--cpus-per-gpu=0 --gpus=1",
	"--gpus-per-node=2 --gpus-per-task=1 -N1", "--gpus-per-node=4 --gpus-per-task=1 --ntasks-per-node=8 -N1", "-N2 -n8 --gres=gpu:4 --gpus-per-task=1", "-N1-2 -n2 --gpus-per-node=1 --gpus-per-task=1", "-N1 -n2 --gpus-per-node=1 --gpus-per-task=1", "--gpu-bind=closest --gpus=1", "--gpu-bind=nosuch --gpus=1", "--gpu-freq=high --gpus=1", "--gres-flags=enforce-binding --gres=gpu:1", "--gres-flags=nosuch",
	// hosts and features
	"-w node1", "-w node[1-3]", "-w node[1-3] -N2", "-w node[1-2] -N3", "-w node[1-2] -n1", "-w node[3-1]", "-w node[1-", "-w node1,node2 -n2", "-w node3,node1 -N2", "-x node1", "-x node[1-5,7]", "-x node[1", "-w node1 -x node1",
	"-C gpu", "-C gpu&a100", "-C 'gpu|a100'", "-C gpu,a100", "-C '(gpu|a100)&ib'", "-C '[a100|v100]'", "-C 'a100*2' -N2", "-C '[a100*1&v100*1]' -N2", "-C 'gpu&'", "-C '&gpu'", "-C '(gpu'", "-C 'gpu)'", "-C 'gpu||a100'", "-C ''", "-C 'a b'",
	// arrays
	"-a 0-3", "-a 1,3,5", "-a 1-7:2", "-a 0-9%2", "-a 5", "-a 3-1", "-a 1-3:0", "-a -1", "-a x", "-a 1-", "-a 0-9%0", "-a 0-9%x", "-a 0-9%", "-a 1,2,2", "-a 1,1-3", "-a [0-3]", "-a 0-100000", "-a 0-100001", "-a 5-5", "-a 1-3,7,9-11%2", "-a ''", "-a 01-03", "-a '1, 2'", "-a 1,2%1,3", "-a 0-15:4",
	// names and files
	"-J 'a b'", "-J a/b", "-J ''", "--job-name=x%j", "-o out.%j", "-o %x-%u-%A-%a.log", "-o %%j", "-o '\\\\%j'", "-o /dev/null", "-o a/b/%j", "-o ''", "-e err.%j", "-e /tmp/%j.err -o /tmp/%j.out", "-i in.%j", "-i none", "-o none", "-D /tmp", "-D sub", "-D /no/such/dir", "-D ''",
	"-a 1-2 -o %A_%a", "-a 1-2 -o %j", "--open-mode=append", "--open-mode=a", "--open-mode=t", "--open-mode=truncate", "--open-mode=x", "--comment='a b'", "--comment=", "-A foo", "-A Foo", "-p main,gpu", "-p nosuch", "-p ''", "-p main,", "-q high",
	// rank, time of start, dependencies
	"--nice", "--nice=5", "--nice=-5", "--nice=x", "--nice=99999999999", "--nice 5", "--priority=5", "--priority=-1", "--priority=TOP", "--priority=x", "--priority=9999999999",
	"-b now", "-b now+1hour", "-b now+10", "-b now+x", "-b 23:59", "-b 25:00", "-b 2030-01-02", "-b 2030-01-02T03:04", "-b 2030-01-02T03:04:05", "-b 2030-13-01", "-b 010230", "-b 01/02/30", "-b 1/2", "-b tomorrow", "-b midnight", "-b noon", "-b teatime", "-b fika", "-b elevenses", "-b today", "-b yesterday", "-b 4pm", "-b 4:00PM", "-b '4:00 PM'", "-b 13:00PM", "-b now+2weeks", "-b now-1hour", "-b ''",
	"-d singleton", "-d afterok:1", "-d afterok:1:2", "-d afterany:1,afterok:2", "-d 'afterany:1?afterok:2'", "-d after:1+5", "-d nosuch:1", "-d afterok:", "-d 5", "-d aftercorr:1", "-d afterok:1_3", "-d expand:1", "-d ''",
	"--signal=USR1", "--signal=USR1@60", "--signal=B:USR1@60", "--signal=R:USR1", "--signal=10@60", "--signal=SIGUSR1@60", "--signal=FOO", "--signal=USR1@x", "--signal=USR1@99999", "--signal=0", "--signal=@60", "--signal=BR:USR1", "--signal=usr1",
	"--requeue", "--no-requeue", "--requeue --no-requeue", "--requeue=5", "-H", "--deadline=now+1hour -t 5", "--deadline=x", "-k", "--no-kill=off", "--no-kill=x", "--wait-all-nodes=1", "--wait-all-nodes=2", "--wait-all-nodes=x",
	// the rest
	"--export=NONE", "--export=ALL,A=1", "--export=A,B", "--export=", "--export=1A=2", "--export-file=/no/such", "--hint=nomultithread", "--hint=nosuch", "--hint=multithread", "--hint=compute_bound", "--mail-type=ALL", "--mail-type=nosuch", "--mail-type=END,FAIL", "--mail-user=a@b",
	"-m block", "-m cyclic", "-m block:cyclic", "-m plane=4", "-m plane", "-m plane=x", "-m nosuch", "-m arbitrary", "-m block:nosuch", "-m block,Pack", "-m '*:block'", "-m block:block:block", "--licenses=SCRATCH:2", "-L SCRATCH", "-L nosuch", "-L SCRATCH:x", "-L ''",
	"--acctg-freq=30", "--acctg-freq=x", "--core-spec=1", "-S x", "--cpu-freq=high", "--cpu-freq=nosuch", "--switches=1", "--switches=1@5", "--switches=x", "--profile=none", "--profile=nosuch", "--propagate", "--propagate=NONE", "--propagate=nosuch", "--mem-bind=local", "--mem-bind=nosuch", "--get-user-env", "--bb=x", "--thread-spec=1", "--threads-per-core=1", "--threads-per-core=x", "--sockets-per-node=1", "--cores-per-socket=1", "-B 1:2:1", "-B x", "--delay-boot=5", "--delay-boot=x", "--kill-on-invalid-dep=yes", "--kill-on-invalid-dep=x", "--wckey=x", "--uid=root", "--gid=0", "--reboot", "--spread-job", "--use-min-nodes -N1-2", "--network=x", "--mcs-label=x", "--resv-ports=1", "--power=x", "--batch=gpu -C gpu", "--cluster-constraint=x", "--container=/x", "--prefer=gpu", "--parsable", "-v", "-Q", "--wrap=ls", "--ignore-pbs",
	// the words themselves
	"--foo", "--foo=1", "-Z", "--no", "--nod=2", "--node=2", "--mem-p=1", "--ntask=4", "--out=x", "--nodes", "-N", "--exclusive=", "--hold=yes", "hello", "-- foo", "--", "-", "--=x", "--comment='a", "--comment=\"a", ": -n1", "-n 1 : -n 2", "-n1 -N1 -t5", "-n1N1", "-HN1", "-n=4", "-n= 4", "--nodes= 4", "--nodes =4", "--nodes\n#SBATCH 4", "-N 1\n#SBATCH -N 2", "-N 1 # two", "-N 1#2", "-J a\\ b", "-J a\\#b", "-J 'a#b'", "-J \"a'b\"", "-J a\"b c\"d", "–N 1", "-N 1\n##SBATCH -N 2", "-N 1\n #SBATCH -N 2", "-N 1\n#sbatch -N 2", "-N 1\n\n#SBATCH -t 5", "-N 1\ntrue\n#SBATCH -N 2", "-N 1 \\\n#SBATCH -t 5", "-J ''\n#SBATCH -N 2", "'' -N 2",
	"-n2\n#SBATCH hetjob\n#SBATCH -n3", "-n2 -t 5 -J a\n#SBATCH packjob\n#SBATCH -n3 -p gpu", "-n2\n#SBATCH hetjob\n#SBATCH hetjob\n#SBATCH -n3", "-a 1-2\n#SBATCH hetjob\n#SBATCH -n1", "hetjob\n#SBATCH -n3", "-n2\n#SBATCH hetjob -N2\n#SBATCH -n3", "-n2 --mem=1G --gres=gpu:1\n#SBATCH hetjob\n#SBATCH -n3 --mem=2G",
}

// lineDiffers says of lines why sbatch answers otherwise.
var lineDiffers = map[string]string{
	"-t -5":            wraps,
	"-t 99999999":      "sbatch counts seconds in 32 bits, and the limit becomes another one",
	"-t 9999999999999": wraps,
	"-N -2":            "sbatch reads it as 1-2",
	"-N 0":             "sbatch makes a job of it that has no nodes",
	"-N +2":            lax,
	"-a 0-9%x":         lax,
	"-a 0-9%":          lax,
	"-a '1, 2'":        lax,
	"-a 1,2%1,3":       lax,
	"-C 'gpu&'":        lax,
	"--nice=x":         lax,
	"--priority=x":     "22.05 reads it as 0, which holds the job for ever",
	"--export=1A=2":    lax,

	"-N 1,3":                         newer,
	"-N 1-15:4":                      newer,
	"--gres=gres/gpu:2":              newer,
	"-b elevenses":                   newer,
	"--requeue=5":                    newer,
	"--resv-ports=1":                 newer,
	"--power=x":                      "gone in newer versions",
	"--gres=gpu:2 --gpus-per-node=2": "newer versions refuse both together; here it is a warning unless all is strict",

	"--gres=nosuch:1": site,
	"-p nosuch":       site,

	"--mem-per-gpu=1G":         "a warning here: no GPUs, no memory",
	"-C 'a100*2' -N2":          unbuilt,
	"-C '[a100*1&v100*1]' -N2": unbuilt,
	"--bb=x":                   unbuilt,
	"--uid=root":               unbuilt,
	"--gid=0":                  unbuilt,
	"--container=/x":           unbuilt,
	"-B 1:2:1":                 "sockets and cores are not chosen here",

	"--ntasks-per-gpu=2 -n4":                   "the GPUs that follow are not shown",
	"--gpus-per-socket=1 --sockets-per-node=2": "shown by socket",
	"--gpus-per-node=2 --gpus-per-task=1 -N1":  "the tasks that follow are not counted before the job starts",
	"-o %%j":         shownRaw,
	"-o '\\\\%j'":    shownRaw,
	"-p main,":       "shown as given",
	"--gres=":        "an empty list asks for nothing here",
	"--gres=gpu:1.x": "a type may begin with a digit here",
	"--gres=nvme:2k": "shown as given",
	"--=x":           "every option begins with no letters: ambiguous",
	"--nodes= 4":     "sbatch blames the empty value, here the word behind the blank is blamed",
}

// Reasons that several lines share.
const (
	wraps    = "sbatch takes numbers out of range modulo something"
	lax      = "sbatch stops reading a value at what it does not understand"
	newer    = "newer than 22.05"
	site     = "what a site has is not known to the reader"
	unbuilt  = "refused here"
	shownRaw = "scontrol expands this otherwise than the job does when it starts"
)

// Each line is taken or refused alike, and what both take shows the same fields.
func TestValues(t *testing.T) {
	l := openLab(t)
	count, compared := map[string]int{}, 0
	for _, line := range lines {
		text := "#!/bin/sh\n#SBATCH " + line + "\ntrue\n"
		s, ours := l.parse(text, true)
		got, r := l.hold(t, text)
		real := complaint(t, r)
		var diff []string
		switch {
		case agree(real, ours):
			count["both refuse"]++
		case real == (verdict{}) && len(ours) == 0:
			count["both accept"]++
			var n int
			n, diff = l.compare(t, s, got)
			compared += n
		case real == (verdict{}) && complaint(t, l.run(t, "sbatch", "--test-only", l.write(t, text))).kind == "does not fit":
			count["both refuse: no node could ever do"]++ // sbatch only where the job is not held
		case real.kind == "value" && len(ours) == 0 && withoutEffect(real.what):
			count["values of options without effect, not checked here"]++
		default:
			diff = []string{"sbatch: " + real.String() + ", here: " + join(ours)}
		}
		why, isListed := lineDiffers[line]
		switch {
		case isListed && len(diff) == 0:
			t.Errorf("%q is listed as a difference, but there is none", line)
		case isListed:
			count["listed differences"]++
			t.Logf("%q: %s: %s", line, strings.Join(diff, "; "), why)
		case len(diff) > 0:
			t.Errorf("%q: %s\n%s", line, strings.Join(diff, "; "), r.stderr)
		}
	}
	t.Logf("%d lines, %v, %d fields compared", len(lines), count, compared)
}

// withoutEffect reports whether an option is taken without effect.
func withoutEffect(name string) bool {
	return slices.ContainsFunc(sbatch.Table(), func(o sbatch.Option) bool { return o.Name == name && o.Status == sbatch.NoEffect })
}

func join(v []verdict) string {
	if len(v) == 0 {
		return "accepted"
	}
	var out []string
	for _, v := range v {
		out = append(out, v.String())
	}
	return strings.Join(out, ", ")
}
