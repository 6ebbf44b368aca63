package podscript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// value is a text for a shell, parts of which are known only while the script runs.
type value []piece

// piece is a literal text, or an expression of the shell as it stands between double quotes.
type piece struct{ text, shell string }

func literalText(text string) value {
	if text == "" {
		return nil
	}
	return value{{text: text}}
}

func shellText(shell string) value { return value{{shell: shell}} }

// shellWord is the value as one word of the shell.
func (v value) shellWord() string {
	var b strings.Builder
	for _, p := range v {
		if p.shell != "" {
			b.WriteString(`"` + p.shell + `"`)
		} else {
			b.WriteString(quoteWord(p.text))
		}
	}
	if b.Len() == 0 {
		return "''"
	}
	return b.String()
}

// quoteWord makes one word of a text for a shell.
func quoteWord(s string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=:,+@%", r))
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// variable is one of a container.
type variable struct {
	name  string
	value value
}

// variables are those of a container, each name once.
type variables []variable

func (vs *variables) set(name string, v value) {
	if i := vs.find(name); i >= 0 {
		*vs = slices.Delete(*vs, i, i+1)
	}
	*vs = append(*vs, variable{name, v})
}

func (vs *variables) find(name string) int {
	return slices.IndexFunc(*vs, func(v variable) bool { return v.name == name })
}

// expandNames fills in $(NAME) as Kubernetes does: a name that is not there stays as it is, and $$ is $.
func (vs *variables) expandNames(text string) value {
	var out value
	var plain strings.Builder
	flush := func() {
		out = append(out, literalText(plain.String())...)
		plain.Reset()
	}
	for {
		before, rest, found := strings.Cut(text, "$")
		plain.WriteString(before)
		if !found {
			break
		}
		text = rest
		switch {
		case strings.HasPrefix(rest, "$"):
			plain.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "("):
			name, after, closed := strings.Cut(rest[1:], ")")
			i := vs.find(name)
			switch {
			case !closed:
				plain.WriteString("$(")
				text = rest[1:]
			case i < 0:
				plain.WriteString("$(" + name + ")")
				text = after
			default:
				flush()
				out = append(out, (*vs)[i].value...)
				text = after
			}
		default:
			plain.WriteByte('$')
		}
	}
	flush()
	return out
}

// indexMark and nextMark stand for a pod's index, and one more, in a text that Set.Expand has seen.
const (
	indexMark = "\x00i\x00"
	nextMark  = "\x00j\x00"
)

// operatorValue is a value of an operator (podspec.EnvVar) for the pod of index $_cox_i.
func (r *role) operatorValue(text string) value {
	text = strings.ReplaceAll(text, "\x00", "") // no variable can have it
	text = strings.ReplaceAll(text, "{i}", indexMark)
	text = strings.ReplaceAll(text, "{i+1}", nextMark)
	return splitMarks(r.set.Expand(text, 0))
}

func splitMarks(text string) value {
	var out value
	for i, part := range strings.Split(text, "\x00") {
		switch {
		case i%2 == 0:
			out = append(out, literalText(part)...)
		case part == "i":
			out = append(out, piece{shell: "$_cox_i"})
		default:
			out = append(out, piece{shell: "$((_cox_i + 1))"})
		}
	}
	return out
}

// podName is the name of the role's pod of index $_cox_i.
func (r *role) podName() value {
	return splitMarks(strings.NewReplacer("\x00", "", "{i}", indexMark, "{i+1}", nextMark).Replace(r.role.PodName))
}

// parseQuantity reads an amount as Kubernetes writes it, in thousandths.
func parseQuantity(text string) (int64, error) {
	bad := fmt.Errorf("%q is no amount", text)
	at := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '+' && r != '-' })
	number, unit := text, ""
	if at >= 0 {
		number, unit = text[:at], text[at:]
	}
	scale := map[string]float64{
		"": 1, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
		"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60,
	}
	factor, known := scale[unit]
	if !known {
		f, err := strconv.ParseFloat(text, 64) // 1e3
		if err != nil {
			return 0, bad
		}
		number, factor = strconv.FormatFloat(f, 'f', -1, 64), 1
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || n < 0 || n*factor*1000 > 9e18 {
		return 0, bad
	}
	return int64(n*factor*1000 + 0.5), nil
}
