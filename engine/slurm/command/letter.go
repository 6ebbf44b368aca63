package command

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// letter is a command as a shell elsewhere gets it: the words that begin it say nothing of
// it, for whoever is on that machine can read them, they have to pass through shells of all
// kinds, and their length is limited. The command and its environment are the first bytes of
// its standard input; what stands behind them is the command's own.
//
// The program is looked for in the PATH that is there: the one among the variables is the
// job's. A folder, if one is named, stands before it.
func letter(folder string, env []string, c *Call) (line string, stdin []byte) {
	var b, odd bytes.Buffer
	if folder != "" {
		b.WriteString("PATH=" + quote(folder) + ":\"$PATH\"\n")
	}
	fmt.Fprintf(&b, "command -v %s >/dev/null || { echo %[1]s: not found >&2; exit 127; }\n", quote(c.Name))
	var exports []string
	for _, v := range append([]string{"LC_ALL=C"}, append(append([]string{}, c.Env...), env...)...) {
		name, value, ok := strings.Cut(v, "=")
		switch {
		case ok && variable.MatchString(name) && !fixed[name]:
			exports = append(exports, "export "+name+"="+quote(value)+"\n")
		case ok:
			odd.WriteString(" " + quote(v))
		}
	}
	b.WriteString("set --")
	if odd.Len() > 0 {
		b.WriteString(` "$(command -v env)"` + odd.String())
	}
	b.WriteString(` "$(command -v ` + quote(c.Name) + `)"`)
	for _, v := range c.Args {
		b.WriteString(" " + quote(v))
	}
	b.WriteString("\n" + strings.Join(exports, "") + `exec "$@"`)
	return fmt.Sprintf(`eval "$(head -c %d)"`, b.Len()), append(b.Bytes(), c.Stdin...)
}

// variable is what every shell takes for the name of a variable. Others, as bash has them for
// functions, and those that some shell does not let be set, are env's to hand on.
var (
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	fixed    = map[string]bool{"BASHOPTS": true, "BASH_VERSINFO": true, "EUID": true, "PPID": true, "SHELLOPTS": true, "UID": true}
)

// become are words with the user's name in them.
func become(words []string, user string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.NewReplacer("%%", "%", "%u", user).Replace(w)
	}
	return out
}
