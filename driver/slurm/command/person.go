package command

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/model/fault"
)

var _ site.Teller = (*Site)(nil)

// queryUser is a user as squeue and sacct take him: whoever runs the commands by his number, of
// which sacct makes everybody where that is root.
func (s *Site) queryUser(ctx context.Context, user string) (string, error) {
	if user != "" {
		return user, nil
	}
	me := s.me.Load()
	if me == nil {
		p, err := s.lookUpUser(ctx, "")
		if err != nil {
			return "", err
		}
		s.me.Store(&p)
		me = &p
	}
	return strconv.FormatUint(uint64(me.UID), 10), nil
}

// lookUpUser is a user where the commands run; empty: who runs them.
func (s *Site) lookUpUser(ctx context.Context, name string) (site.Person, error) {
	p := site.Person{Name: name}
	for _, option := range []string{"-u", "-g", "-un"} {
		args := []string{option}
		if name != "" {
			args = append(args, "--", name)
		}
		r, err := s.run.Run(ctx, Call{Name: "id", Args: args})
		said := oneLine(string(r.Stderr))
		switch {
		case err != nil:
			return p, fault.New(fault.Unavailable, "id: %w", err)
		case r.Code == 1 && name != "":
			return p, fault.New(fault.NotFound, "there is no user %s where Slurm's commands run: %s", name, said)
		case r.Code == 1 && option == "-un": // a number without a name
			p.Name = strconv.FormatUint(uint64(p.UID), 10)
			continue
		case r.Code != 0:
			return p, fault.New(fault.Unavailable, "id: exit %d: %s", r.Code, said)
		}
		text := strings.TrimSpace(string(r.Stdout))
		if option == "-un" {
			p.Name = text
			continue
		}
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return p, fault.New(fault.Unavailable, "id %s answered %q", option, text)
		}
		if option == "-u" {
			p.UID = uint32(n)
		} else {
			p.GID = uint32(n)
		}
	}
	return p, nil
}

// Me is site.Teller's.
func (s *Site) Me(ctx context.Context) (site.Person, error) {
	p, err := s.lookUpUser(ctx, "")
	if err != nil {
		return p, err
	}
	p.Operator, err = s.Operates(ctx, &p)
	return p, err
}

// Person is site.Teller's.
func (s *Site) Person(ctx context.Context, name string) (site.Person, error) {
	return s.lookUpUser(ctx, name)
}

// Operates reports whether a user may change others' jobs.
func (s *Site) Operates(ctx context.Context, p *site.Person) (bool, error) {
	if p.UID == 0 {
		return true, nil
	}
	out, err := s.runQuery(ctx, "scontrol", "show", "config")
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(string(out)) {
		key, value, _ := strings.Cut(line, "=")
		name, number, _ := strings.Cut(strings.TrimSpace(value), "(") // slurm(64030)
		if strings.TrimSpace(key) == "SlurmUser" && (name == p.Name || strings.TrimSuffix(number, ")") == strconv.FormatUint(uint64(p.UID), 10)) {
			return true, nil
		}
	}
	out, err = s.runQuery(ctx, "sacctmgr", "--noheader", "--parsable2", "show", "user", "name="+p.Name, "format=adminlevel")
	level := strings.TrimSpace(string(out))
	return slices.Contains([]string{"Operator", "Administrator"}, level), cmp.Or(keepUnavailable(err), nil)
}

// keepUnavailable is an error that is none of the answers; a cluster without accounting has no
// operators.
func keepUnavailable(err error) error {
	if fault.KindOf(err) == fault.Unavailable {
		return err
	}
	return nil
}
