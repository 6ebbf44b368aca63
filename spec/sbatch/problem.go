package sbatch

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/coxswain-sched/coxswain/model/getopt"
	"github.com/coxswain-sched/coxswain/spec"
)

// reportProblems turns problems into errors. Unless strict, options of the plugins that
// are known become warnings, and old names are read as today's. The word after an
// unknown option is taken for its value.
func (p *parser) reportProblems(problems []Problem) (extra []Directive) {
	problems = joinStray(problems)
	for i, pr := range problems {
		var before *Problem
		if i > 0 {
			before = &problems[i-1]
		}
		switch {
		case p.opts.Strict:
			p.refuseProblem(pr)
		case pr.Kind == UnknownOption && pr.isForeign():
			if d, ok := p.warnForeign(pr); ok {
				extra = append(extra, d)
			}
		case pr.Kind == StrayWord && before != nil && before.isLong() && before.index+1 == pr.index &&
			!strings.Contains(before.word.text, "=") && before.Line == pr.Line:
			// the value of the option before it
		case pr.Kind == UnwantedArgument && strings.HasPrefix(pr.Text, "--get-user-env="):
			p.warnings = append(p.warnings, spec.Warning{
				File: pr.word.file, Line: pr.Line, Col: pr.Col, Option: pr.Text, Message: "is an old form: read as --get-user-env",
			})
		default:
			p.refuseProblem(pr)
		}
	}
	return extra
}

// joinStray makes one problem of stray words that follow each other on a line.
func joinStray(problems []Problem) []Problem {
	var out []Problem
	for _, pr := range problems {
		if n := len(out); n > 0 && pr.Kind == StrayWord && out[n-1].Kind == StrayWord && pr.Line == out[n-1].Line &&
			pr.Line > 0 && pr.index == out[n-1].index+1 {
			joined := out[n-1].word
			joined.end, joined.at = pr.word.end, nil
			joined.text = joined.rawText()
			out[n-1].word, out[n-1].Text, out[n-1].index = joined, joined.text, pr.index
			continue
		}
		out = append(out, pr)
	}
	return out
}

// isLong reports whether the problem is an unknown long option.
func (pr Problem) isLong() bool {
	return pr.Kind == UnknownOption && strings.HasPrefix(pr.Text, "--") && len(pr.Text) > 2
}

// isForeign reports whether the option belongs to a plugin that is known or is an old name
// of one of sbatch's.
func (pr Problem) isForeign() bool {
	if !pr.isLong() {
		return false
	}
	pl := pluginByName(pr.Text[2:])
	return pl != nil && pl.instead == ""
}

// warnForeign warns of a foreign option; an old name is read as today's.
func (p *parser) warnForeign(pr Problem) (Directive, bool) {
	warn := func(message string) {
		p.warnings = append(p.warnings, spec.Warning{
			File: pr.word.file, Line: pr.Line, Col: pr.Col, Option: pr.Text, Message: message,
		})
	}
	old := pluginByName(pr.Text[2:])
	if old.now == "" {
		warn(old.what + ": not read")
		return Directive{}, false
	}
	opt, _ := optionByName(old.now)
	_, value, hasValue := strings.Cut(pr.word.text, "=")
	if (opt.Arg == getopt.Required) != hasValue {
		warn(old.what + ": not read; write --" + old.now)
		return Directive{}, false
	}
	warn(old.what + ": read as that")
	return Directive{
		Option: opt.canonicalName(), Value: value, HasValue: hasValue, Raw: pr.word.rawText(), Line: pr.Line,
		opt: opt, name: pr.word, value: pr.word, valueAt: len(pr.word.text) - len(value),
	}, true
}

// refuseProblem turns a problem into an error with the remedy that fits.
func (p *parser) refuseProblem(pr Problem) {
	var message, remedy string
	switch pr.Kind {
	case UnknownOption:
		message = fmt.Sprintf("%s is no option of sbatch", pr.Text)
		remedy = cmp.Or(pr.Detail, "take it out; options of site plugins that Coxswain does not know are refused too")
		if pl := pluginByName(strings.TrimPrefix(pr.Text, "--")); pl != nil {
			remedy = "it " + pl.what
			if pl.instead != "" {
				remedy += ": " + pl.instead
			}
		}
	case AmbiguousOption:
		message, remedy = pr.Text+" is ambiguous", "it could be "+pr.Detail
	case MissingArgument:
		message, remedy = pr.Text+" needs an argument", "write "+pr.Text+"=VALUE"
	case UnwantedArgument:
		name, _, _ := strings.Cut(pr.Text, "=")
		message, remedy = name+" takes no argument", "write "+name
	case UnmatchedQuote:
		quote := pr.Text[strings.IndexAny(pr.Text, `"'`):][:1]
		message, remedy = fmt.Sprintf("the quote %s has no partner on its line", quote), "close it, or write \\"+quote+" for the character itself"
	case UnexpectedColon:
		message, remedy = "a colon begins a word", "a new component of a heterogeneous job is a line #SBATCH hetjob"
	case StrayWord:
		message, remedy = p.explainStray(pr)
	}
	p.errs = append(p.errs, pr.word.errorAt(0, len(pr.word.text), message, remedy))
}

// shortenWord shortens a word for a message.
func shortenWord(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}

// explainStray explains a word that is neither an option nor an option's argument.
func (p *parser) explainStray(pr Problem) (message, remedy string) {
	message = fmt.Sprintf("%q is no option", shortenWord(pr.Text))
	before := strings.TrimRight(pr.word.src[:pr.word.col], " \t\u00a0")
	r, size := utf8.DecodeRuneInString(pr.Text)
	switch {
	case strings.ContainsRune("‐‑‒–—―−", r):
		return fmt.Sprintf("%q begins with %s (U+%04X), not with a hyphen", pr.Text, dashName(r), r),
			"type it again: --" + strings.TrimLeft(pr.Text[size:], "-‐‑‒–—―−")
	case strings.HasSuffix(before, "=") && pr.word.line > 0:
		p.blanks = append(p.blanks, pr.Line)
		option := before[strings.LastIndexAny(before, " \t")+1:]
		return message, "without the blank: " + option + pr.Text
	case pr.Text == "=" || strings.HasPrefix(pr.Text, "="):
		return message, "write no blanks around ="
	case strings.ContainsAny(pr.word.src[:pr.word.end], "<>{}[]") && !strings.HasPrefix(pr.Text, "("):
		return message, "put your own value in place of <…>; a value with blanks needs quotes"
	case strings.HasPrefix(pr.Text, "("):
		return message, "begin a comment with #"
	}
	return message, "begin a comment with #, put quotes around a value with blanks"
}

func dashName(r rune) string {
	switch r {
	case '–':
		return "an en dash"
	case '—':
		return "an em dash"
	case '−':
		return "a minus sign"
	}
	return "a Unicode dash"
}

// warnLookalikes warns of characters in a value that look like others, and of
// variables, which nobody expands.
func (p *parser) warnLookalikes(d *Directive) {
	for _, r := range d.Value {
		var what string
		switch r {
		case '\u00a0', '\u202f', '\u2007':
			what = "a no-break space"
		case '\u200b', '\ufeff', '\u200c', '\u200d':
			what = "an invisible character"
		case '“', '”', '„', '‘', '’', '«', '»':
			what = "a typographic quote"
		case '–', '—', '−', '‐', '‑':
			what = dashName(r)
		default:
			continue
		}
		p.addWarning(d, fmt.Sprintf("has %s (U+%04X) in its value, which is taken as it is", what, r))
		return
	}
	i := strings.IndexByte(d.Value, '$')
	if i < 0 || i+1 == len(d.Value) || d.Option == "comment" || d.Option == "wrap" {
		return
	}
	if c := d.Value[i+1]; c == '{' || c == '(' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' {
		p.addWarning(d, fmt.Sprintf("keeps the text %q: variables are not expanded in #SBATCH lines", d.Value[i:]))
	}
}
