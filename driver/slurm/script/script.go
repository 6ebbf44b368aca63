// Package script makes of a batch script one that begins at most once for each attempt.
//
// Slurm may begin what it was given twice: a submission whose answer was lost is sent
// again, a controller that was killed finds a job again that was thought lost, a requeued
// job begins under the same number. So the script takes a lock before anything of the
// user's runs: a file under the attempt's name, created exclusively on a file system that
// all nodes share. Who does not get it ends at once. A fence (engine, docs/explanation/design/0005) is
// the same file, created by us: whichever is first decides, and no clock is asked.
//
// What is added stands below the directives of the script and above its first command,
// so the script stays as it was for the user: its name, its arguments, its standard
// input, the shell that it names. Scripts of other interpreters than a shell (python,
// perl, csh) cannot have shell code in them: they are put behind it and unpacked.
//
// What it does not do: it does not wait, it starts no process that outlives it, it knows
// nothing of how a script is handed over.
package script

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/job"
)

// Exit codes with which a script ends that was not to begin. Nothing of the user's has
// run then.
const (
	ExitBarred   = 117 // another one has the lock, or it is fenced
	ExitLockless = 118 // the lock could not be taken: no directory, no room, no right
	ExitStranger = 119 // it runs as another user than the job's owner
)

// Guard says where the lock of an attempt is.
type Guard struct {
	Ref   engine.Ref
	Dir   string // absolute name on the nodes; its users can create files in it
	Token string // makes the lock's name one that nobody guesses; letters and digits
	User  string // whose the job is, who alone may run it; empty: not looked at
	UID   uint32 // the user's number on the cluster; 0: not known, and the name counts

	// OnNode says that each node has its own locks, in a directory of each user's: Dir, a dot
	// and the user's number. The attempt's nodes are given, and so is the one that its script
	// runs on.
	OnNode bool

	Ports *Ports // of a job that serves; nil: it does not

	Secrets []job.Secret // of the job, whose values are in SecretsDir before it can begin; none with OnNode
}

// Lock is the name of the lock's file for a beginning: 0 the first, then each time that
// Slurm has requeued the job.
func (g *Guard) Lock(restarts int) string {
	return path.Join(g.Dir, g.Ref.String()+"-"+g.Token+"."+fmt.Sprint(restarts))
}

// Begun is the name of the file that the script creates when it has the lock and begins,
// Done that of the one when it ends: hints, since a script may be killed, or end by exec.
func (g *Guard) Begun(restarts int) string { return g.Lock(restarts) + ".begun" }

// Done is the other hint; the exit status of the script stands in it, from its first moment.
func (g *Guard) Done(restarts int) string { return g.Lock(restarts) + ".done" }

// shells are the interpreters that understand what is added.
var shells = map[string]bool{"sh": true, "bash": true, "dash": true, "ksh": true, "mksh": true, "zsh": true, "ash": true}

// marker stands before a script that is unpacked.
const marker = "#--- the script, unpacked by the lines above ---"

// Wrap returns the script with its lock. A script without an interpreter in its first
// line is returned as it is: sbatch refuses it, and says so better.
func Wrap(script []byte, g *Guard) []byte {
	interpreter, arg, ok := shebang(script)
	if !ok {
		return script
	}
	head, body := splitHead(script)
	var b bytes.Buffer
	if shells[path.Base(interpreter)] || path.Base(interpreter) == "env" && shells[firstWord(arg)] {
		b.Write(head)
		b.WriteString(takeLock(g))
		b.Write(body)
		return b.Bytes()
	}
	_, rest, _ := bytes.Cut(head, []byte("\n"))
	b.WriteString("#!/bin/sh\n")
	b.Write(rest) // the directives, which sbatch reads here
	b.WriteString(takeLock(g))
	b.WriteString(unpackBody(g, interpreter, arg))
	b.WriteString(marker + "\n")
	b.Write(script)
	return b.Bytes()
}

// shebang is the interpreter of a script and what follows it.
func shebang(script []byte) (interpreter, arg string, ok bool) {
	line, _, _ := bytes.Cut(script, []byte("\n"))
	text, ok := strings.CutPrefix(strings.TrimRight(string(line), "\r"), "#!")
	if !ok {
		return "", "", false
	}
	interpreter, arg, _ = strings.Cut(strings.TrimSpace(text), " ")
	return interpreter, strings.TrimSpace(arg), interpreter != ""
}

func firstWord(s string) string {
	s = strings.TrimSpace(strings.TrimPrefix(s, "-S"))
	word, _, _ := strings.Cut(s, " ")
	return path.Base(word)
}

// splitHead parts a script after the comments at its beginning: sbatch reads directives up to
// the first line that is neither a comment nor empty.
func splitHead(script []byte) (head, body []byte) {
	at := 0
	for at < len(script) {
		line, _, _ := bytes.Cut(script[at:], []byte("\n"))
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			break
		}
		at = min(at+len(line)+1, len(script))
	}
	head, body = script[:at:at], script[at:]
	if len(head) > 0 && head[len(head)-1] != '\n' {
		head = append(head, '\n')
	}
	return head, body
}

// takeLock is shell code, as POSIX has it, that takes the lock. It leaves no variable, no
// option and no function behind, and a trap for the end that the script may replace. What it
// writes may be read by whoever knows its name, whatever the umask: the driver may be
// somebody else.
func takeLock(g *Guard) string {
	if g.OnNode {
		return takeHere(g)
	}
	stem := shellQuote(path.Join(g.Dir, g.Ref.String()+"-"+g.Token) + ".")
	lock := stem + restarts
	return fmt.Sprintf(`# coxswain: attempt %[1]s begins once
%[7]sif ! (umask 022; set -C; echo "${SLURM_JOB_ID-} ${SLURM_RESTART_COUNT:-0} ${SLURMD_NODENAME:--} $(date +%%s 2>/dev/null || echo -) ${SLURM_JOB_START_TIME:--} ${SLURM_JOB_NODELIST:--}" >%[2]s) 2>/dev/null; then
if [ -s %[2]s ]; then echo "coxswain: attempt %[1]s of this job has begun elsewhere, or is over: nothing is run" >&2; exit %[3]d; fi
echo "coxswain: the lock of attempt %[1]s cannot be taken in "%[4]s": nothing is run" >&2; exit %[5]d
fi
%[9]s%[8]s(umask 022; : >|%[2]s.begun) || :
%[6]s# coxswain: end
`, g.Ref, lock, ExitBarred, shellQuote(g.Dir), ExitLockless, lastWord("022", shellQuote(stem)+restarts), checkOwner(g), g.Ports.choosePorts(lock+".ports"), g.readSecrets(lock+".secrets"))
}

// restarts is shell code: how often Slurm has put the job back.
const restarts = `"${SLURM_RESTART_COUNT:-0}"`

// lastWord is shell code that has the script's exit status written when it ends, into the file
// of a lock, whose quoted name is given quoted once more: it is read now. The trap is run among
// the options, aliases, functions and variables that the script has by then, and depends on
// none of them; but in ksh93, which loses a command of its own that unset is told of, nothing
// is written if one of the functions is called echo, umask or command.
func lastWord(umask, lock string) string {
	return `trap '(\set -- "$?"; case "${KSH_VERSION-}" in *93*) ;; *) \unset -f command echo umask ;; esac || :; \set -- "$1" '` + lock + `'; \umask ` + umask +
		`; \echo "$1" >|"$2.done.new" && \command -p mv -f "$2.done.new" "$2.done") 2>/dev/null || :' EXIT
`
}

// checkOwner is shell code that ends what runs as another user than the job's owner: a Slurm that
// takes sbatch --uid from root may run the job as root (24.11 with use_client_ids does).
func checkOwner(g *Guard) string {
	if g.User == "" {
		return ""
	}
	is := "[ \"$(id -un 2>/dev/null)\" = " + shellQuote(g.User) + " ]"
	if g.UID != 0 {
		is = fmt.Sprintf("[ \"$(id -u)\" = %d ]", g.UID)
	}
	return fmt.Sprintf(`if ! %[1]s; then echo "coxswain: this is a job of "%[2]s", and Slurm runs it as $(id -un), uid $(id -u): nothing is run" >&2; exit %[3]d; fi
`, is, shellQuote(g.User), ExitStranger)
}

// unpackBody is shell code that runs what stands behind the marker with its interpreter, in
// the place of the shell. The file is removed by the next script of the user's, or with
// the node's temporary files: whoever reads it while it runs needs it. Where these cannot be
// written it stands beside the lock, and goes with it.
func unpackBody(g *Guard, interpreter, arg string) string {
	if arg != "" {
		arg = " " + shellQuote(arg)
	}
	beside := shellQuote(path.Join(g.Dir, g.Ref.String()+"-"+g.Token)) + ".script"
	if g.OnNode {
		beside = shellQuote(g.Dir) + `."$(command -p id -u)"/` + shellQuote(g.lockName()) + ".script"
	}
	return fmt.Sprintf(`for cox_script in "${TMPDIR:-/tmp}"/cox-script /tmp/cox-script %[5]s; do
cox_script=$(mktemp "$cox_script.XXXXXX" 2>/dev/null) || continue
sed '1,/^%[2]s$/d' "$0" >"$cox_script" && exec %[3]s%[4]s "$cox_script" "$@"
rm -f "$cox_script"
done
echo "coxswain: the script cannot be unpacked, neither in ${TMPDIR:-/tmp} nor in "%[6]s": nothing is run" >&2; exit %[1]d
`, ExitLockless, marker, shellQuote(interpreter), arg, beside, shellQuote(g.Dir))
}

// shellQuote makes one word of a text.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// Arguments returns a shell script that sets its own arguments before anything of it
// runs, for a way in that has none for scripts. ok is false for a script that is not the
// shell's.
func Arguments(script []byte, args []string) (out []byte, ok bool) {
	interpreter, arg, ok := shebang(script)
	if !ok || !shells[path.Base(interpreter)] && !(path.Base(interpreter) == "env" && shells[firstWord(arg)]) {
		return script, false
	}
	head, body := splitHead(script)
	var b bytes.Buffer
	b.Write(head)
	b.WriteString("set --")
	for _, a := range args {
		b.WriteString(" " + shellQuote(a))
	}
	b.WriteString("\n")
	b.Write(body)
	return b.Bytes(), true
}
