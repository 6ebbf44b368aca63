package command

import (
	"bytes"
	"fmt"
	"strings"
)

// remoteCommand is a command as a shell elsewhere gets it: the words that begin it say nothing of
// it, for whoever is on that machine can read them, they have to pass through shells of all
// kinds, and their length is limited. The command is the first bytes of its standard input,
// behind it stands the environment of a job, and then what is the command's own. A folder, if
// one is named, stands before the PATH that is there.
func remoteCommand(folder string, env []string, c *Call) (line string, stdin []byte) {
	var b bytes.Buffer
	if folder != "" {
		b.WriteString("PATH=" + shellQuote(folder) + ":\"$PATH\"\n")
	}
	fmt.Fprintf(&b, "command -v %s >/dev/null || { echo %[1]s: not found >&2; exit 127; }\n", shellQuote(c.Name))
	b.WriteString(`set -- "$(command -v ` + shellQuote(c.Name) + `)"`)
	for _, v := range c.Args {
		b.WriteString(" " + shellQuote(v))
	}
	b.WriteString("\n")
	job := packEnvironment(c.Job)
	if len(job) > 0 { // of nobody else's, and gone at once
		fmt.Fprintf(&b, "t=$(umask 077; mktemp) && head -c %d >\"$t\" && exec %d<\"$t\" || exit 126\nrm -f -- \"$t\"\n", len(job), jobFile)
	}
	for _, v := range append(append([]string{"LC_ALL=C"}, c.Env...), env...) {
		name, value, _ := strings.Cut(v, "=")
		b.WriteString("export " + name + "=" + shellQuote(value) + "\n")
	}
	b.WriteString(`exec "$@"`)
	return fmt.Sprintf(`eval "$(head -c %d)"`, b.Len()), append(append(b.Bytes(), job...), c.Stdin...)
}

// jobFile is the number of the open file with a job's environment.
const jobFile = 3

// packEnvironment is an environment as sbatch reads it from a file.
func packEnvironment(env []string) []byte {
	if len(env) == 0 {
		return nil
	}
	return []byte(strings.Join(env, "\x00") + "\x00")
}

// substituteUser are words with the user's name in them.
func substituteUser(words []string, user string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.NewReplacer("%%", "%", "%u", user).Replace(w)
	}
	return out
}
