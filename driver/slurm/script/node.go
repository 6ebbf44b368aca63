package script

import (
	"fmt"
	"path"
	"strings"
)

// Exit codes of the script that Ask makes: what a node says of an attempt.
const (
	ExitFenced = 40 // it has not begun here, and never does
	ExitLives  = 41 // processes of it live here
	ExitSilent = 42 // it began here, nothing of it lives, and it said no last word
	exitWord   = 130
	exitOther  = 248 // as ExitSilent, but it ended with a status that is not known
)

// mostWord is the greatest exit status that is told as exitWord and itself; rare are others
// that are told exactly too, in their order behind those.
const mostWord = 109

var rare = []int{126, 127, 130, 134, 137, 139, 143, 255}

// Answer is what a node says of an attempt.
type Answer struct {
	Lives bool // processes of it live there
	Began bool // it took its lock there; false: it never does
	Done  bool // its script said its last word
	Exit  int  // that; 1 where it was not 0 and is not known
}

// Read understands the exit status of a job that ran what Ask made. ok is false for every
// other status: such a job says nothing.
func Read(status int) (a Answer, ok bool) {
	switch {
	case status == ExitFenced:
		return Answer{}, true
	case status == ExitLives:
		return Answer{Lives: true, Began: true}, true
	case status == ExitSilent:
		return Answer{Began: true}, true
	case status == exitOther:
		return Answer{Began: true, Done: true, Exit: 1}, true
	case status >= exitWord && status <= exitWord+mostWord:
		return Answer{Began: true, Done: true, Exit: status - exitWord}, true
	case status > exitWord+mostWord && status <= exitWord+mostWord+len(rare):
		return Answer{Began: true, Done: true, Exit: rare[status-exitWord-mostWord-1]}, true
	}
	return Answer{}, false
}

// kept is for how many days a lock on a node is kept whose script has ended: as long as most
// systems keep files in /var/tmp. Others stay: what took them may run.
const kept = 30

// enterDirectory is shell code, as POSIX has it, that has the user's directory of locks on this node:
// d is its name, why is empty or says what is wrong with it. Others can neither look into it
// nor put another one in its place.
func (g *Guard) enterDirectory() string {
	return fmt.Sprintf(`d=%[1]s.$(command -p id -u) why=
(umask 077; command -p mkdir "$d") 2>/dev/null
case "$(LC_ALL=C command -p ls -ldn "$d" 2>/dev/null)" in drwx------*) [ -O "$d" ] || why="$d is another user's" ;; *) why="$d cannot be made, or is no directory of mode 700" ;; esac
case "$(LC_ALL=C command -p ls -ldn %[2]s/. 2>/dev/null)" in d???????w[!tT]*) why=%[2]s" lets everybody rename what is in it (chmod +t)" ;; esac
case "/$(command -p awk -v d="$d/" '{ m = $5; if (m != "/") m = m "/"; if (index(d, m) == 1 && length(m) >= l) { l = length(m); r = $4 } } END { print r }' /proc/self/mountinfo 2>/dev/null)/" in *[/._-]"${SLURM_JOB_ID:-none}"[/._-]*) why=%[2]s" is this job's own, and goes when it ends (job_container/tmpfs)" ;; esac
`, shellQuote(g.Dir), shellQuote(path.Dir(g.Dir)))
}

// lockName is what a lock is called in its directory.
func (g *Guard) lockName() string { return g.Ref.String() + "-" + g.Token + ".0" }

// takeHere is take for a lock on the node that the script runs on. A job that Slurm has put
// back may be on another one: it never begins again.
func takeHere(g *Guard) string {
	return fmt.Sprintf(`# coxswain: attempt %[1]s begins once
%[5]s(
if [ "${SLURM_RESTART_COUNT:-0}" != 0 ]; then echo "coxswain: Slurm has put attempt %[1]s of this job back, and its lock is on the node where it was: nothing is run" >&2; exit %[3]d; fi
%[6]s[ -z "$why" ] || { echo "coxswain: the lock of attempt %[1]s cannot be taken: $why: nothing is run" >&2; exit %[4]d; }
f="$d"/%[2]s
if ! (umask 077; set -C; echo "${SLURM_JOB_ID-} 0 ${SLURMD_NODENAME:--} $(date +%%s 2>/dev/null || echo -) ${SLURM_JOB_START_TIME:--} ${SLURM_JOB_NODELIST:--}" >"$f") 2>/dev/null; then
if [ -s "$f" ]; then echo "coxswain: attempt %[1]s of this job has begun before, or is over: nothing is run" >&2; exit %[3]d; fi
echo "coxswain: the lock of attempt %[1]s cannot be taken in $d: nothing is run" >&2; exit %[4]d
fi
command -p find "$d" -type f -name '*.done' -mtime +%[7]d -exec sh -c 'for f; do rm -f "${f%%.done}" "$f"; done' sh {} + 2>/dev/null || :
) || exit $?
%[8]s%[9]s# coxswain: end
`, g.Ref, shellQuote(g.lockName()), ExitBarred, ExitLockless, checkOwner(g), g.enterDirectory(), kept, lastWord("077", shellQuote(shellQuote(g.Dir))+`."$(command -p id -u)"/`+shellQuote(shellQuote(g.lockName()))), g.Ports.choosePorts(""))
}

// Ask is a batch script that says of an attempt what happened on the node that it runs on, by
// its exit status (Read). Where the attempt has not begun, it never does: its lock is fenced
// first. Mark is in the environment of all its processes.
func (g *Guard) Ask(mark string) []byte {
	var words strings.Builder
	for i, s := range rare {
		fmt.Fprintf(&words, "%d) exit %d ;; ", s, exitWord+mostWord+1+i)
	}
	return fmt.Appendf(nil, `#!/bin/sh
# coxswain: did attempt %[1]s begin here, and does anything of it live?
lives() { grep -qszxF %[5]s /proc/[0-9]*/environ; }
%[2]sgrep -qszxF "SLURM_JOB_ID=$SLURM_JOB_ID" /proc/[0-9]*/environ || exit %[3]d # who does not find himself sees nobody
if [ -n "$why" ]; then lives && exit %[6]d; echo "coxswain: $why" >&2; exit %[3]d; fi
f="$d"/%[4]s
umask 077
t=$(mktemp "$d/new.XXXXXXXX") || exit %[3]d
echo fenced >"$t" && ln -T "$t" "$f" 2>/dev/null
rm -f "$t"
[ -e "$f" ] || exit %[3]d
if lives; then exit %[6]d; fi
read -r w s <"$f"
if [ "$w" = fenced ]; then exit %[7]d; fi
[ -s "$f.done" ] && read -r s <"$f.done" || exit %[8]d
case $s in %[9]s *[!0-9]*) exit %[10]d ;; esac
[ "$s" -le %[11]d ] && exit $((%[12]d + s))
exit %[10]d
`, g.Ref, g.enterDirectory(), ExitLockless, shellQuote(g.lockName()), shellQuote(mark), ExitLives, ExitFenced, ExitSilent, words.String(), exitOther, mostWord, exitWord)
}
