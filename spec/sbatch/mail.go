package sbatch

import (
	"fmt"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
)

// mailTypes are the events of --mail-type in the order in which a job lists them.
// NONE and ALL stand for none and for the first six.
var mailTypes = [...]string{
	"BEGIN", "END", "FAIL", "REQUEUE", "INVALID_DEPEND", "STAGE_OUT",
	"TIME_LIMIT", "TIME_LIMIT_90", "TIME_LIMIT_80", "TIME_LIMIT_50", "ARRAY_TASKS",
}

const (
	mailAll   = 1<<6 - 1 // what ALL stands for: the first six
	mailForms = "NONE, BEGIN, END, FAIL, REQUEUE, INVALID_DEPEND, STAGE_OUT, TIME_LIMIT, TIME_LIMIT_90, TIME_LIMIT_80, TIME_LIMIT_50, ARRAY_TASKS, ALL"
)

// mailBits reads a list of mail types as bits; NONE anywhere in it empties it, as
// in sbatch. unknown are the parts that are no types.
func mailBits(value string) (bits uint, none bool, unknown []string) {
	for part := range strings.SplitSeq(value, ",") {
		part = strings.TrimSpace(part)
		n := mailType(part)
		switch {
		case part == "":
		case strings.EqualFold(part, "NONE"):
			none = true
		case strings.EqualFold(part, "ALL"):
			bits |= mailAll
		case n < 0:
			unknown = append(unknown, part)
		default:
			bits |= 1 << n
		}
	}
	if none {
		bits = 0
	}
	return bits, none, unknown
}

func mailType(name string) int {
	for i, t := range mailTypes {
		if strings.EqualFold(t, name) {
			return i
		}
	}
	return -1
}

// checkMail blames a list of mail types that has none, and warns of parts that are
// none, as sbatch leaves them out.
func (p *parser) checkMail(d *Directive) {
	bits, none, unknown := mailBits(d.Value)
	for i, u := range unknown {
		if i == maxNearest {
			break
		}
		at := strings.Index(d.Value, u)
		switch {
		case bits == 0 && !none:
			p.blamePart(d, at, len(u), fmt.Sprintf("%q is no event", u), "forms: "+mailForms)
		default:
			p.addWarning(d, fmt.Sprintf("has a part that is no event and is left out: %q (forms: %s)", u, mailForms))
		}
	}
	if bits == 0 && !none && len(unknown) == 0 {
		p.failOption(d, fmt.Errorf("names no event"), "forms: "+mailForms)
	}
}

// fillMail fills who is told of what. Lists add up over all lines and the command line;
// a later NONE takes back what was said before it.
func (p *parser) fillMail(s *job.Spec, set settings) {
	types, asked := set.get("mail-type")
	to, addressed := set.get("mail-user")
	if addressed && strings.ContainsFunc(to.Value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		p.failOption(to, fmt.Errorf("has a control character in it"), "name users or addresses, separated by commas")
		return
	}
	if !asked {
		if addressed {
			p.addWarning(to, "has no effect: without --mail-type no mail is sent")
		}
		return
	}
	bits, _, _ := mailBits(types.Value)
	if bits == 0 {
		return
	}
	s.Mail = &job.Mail{To: set.optionValue("mail-user")}
	for i, t := range mailTypes {
		if bits&(1<<i) != 0 {
			s.Mail.Types = append(s.Mail.Types, t)
		}
	}
	if !p.opts.Mail {
		p.addWarning(types, "has no effect here: no way to send mail is configured (notify.command or notify.smtp)")
	}
}

// addMail joins a list of mail types to what was said before.
func addMail(before, d *Directive) *Directive {
	bits, none, _ := mailBits(d.Value)
	old, was, _ := mailBits(before.Value)
	switch {
	case none || bits == 0 || was || old == 0:
		return d
	case bits&^old == 0:
		return before // nothing new
	}
	both := *d
	both.Value = before.Value + "," + d.Value
	return &both
}
