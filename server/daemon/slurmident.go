package daemon

import (
	"os"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/model/fault"
)

// service is the word for slurm.AsService.
const service = "service"

// submitIdentity is as whom jobs are handed over. Where nothing is said they are their owners' if
// that is to be had without more: by root of this machine, a login of each user's, or tokens
// for each user.
func (s *slurmSettings) submitIdentity() slurm.Identity {
	mode := slurm.Mode(s.Identity)
	switch {
	case s.Identity == "" && s.hasUserLogins():
		mode = slurm.AsLogin
	case s.Identity == "" && s.isLocalRoot() && s.REST == "":
		mode = slurm.AsOwner
	case s.Identity == "" && s.perUser():
		mode = slurm.AsToken
	case s.Identity == service:
		mode = slurm.AsService
	}
	return slurm.Identity{Mode: mode, Root: s.Root}
}

// hasUserLogins reports whether every user has a login of his own.
func (s *slurmSettings) hasUserLogins() bool {
	return strings.Contains(strings.ReplaceAll(s.SSH, "%%", ""), "%u")
}

// rootLogin reports whether the login says that it is root's.
func (s *slurmSettings) rootLogin() bool { return strings.HasPrefix(s.SSH, "root@") }

// becomeCommand are the words before a command of a user's. Root of a login node has some of its own;
// root of this machine needs none.
func (s *slurmSettings) becomeCommand() []string {
	if len(s.Become) == 0 && s.rootLogin() {
		return []string{"runuser", "-u", "%u", "--"}
	}
	return s.Become
}

// checkIdentity says what a way in cannot do as somebody else.
func (s *slurmSettings) checkIdentity() error {
	words := []string{service}
	for _, m := range slurm.Modes {
		if m != slurm.AsService {
			words = append(words, string(m))
		}
	}
	if s.Identity != "" && !slices.Contains(words, s.Identity) {
		return fault.New(fault.Invalid, "settings: identity: there is no %.70q", s.Identity).Advise("there are %s", strings.Join(words, ", "))
	}
	wrong := func(remedy, format string, args ...any) error {
		return fault.New(fault.Invalid, "settings: identity: "+format, args...).Advise("%s", remedy)
	}
	if len(s.Become) > 0 && !slices.ContainsFunc(s.Become, func(w string) bool { return strings.Contains(w, "%u") }) {
		return fault.New(fault.Invalid, "settings: become: no word of %.70q has %%u in it, the user", strings.Join(s.Become, " ")).Advise("write sudo,-n,-u,%%u,--")
	}
	m := s.submitIdentity().Mode
	switch {
	case s.hasUserLogins() && m != slurm.AsLogin:
		return wrong("leave identity, or write a login without %u", "%s with a login of each user's (%s)", modeWord(m), s.SSH)
	case s.hasUserLogins() && s.User == "":
		return wrong("add user: a user of the cluster who sees everybody's jobs there", "as whom is the cluster looked at, with a login of each user's (%s)?", s.SSH)
	case m == slurm.AsLogin && !s.hasUserLogins():
		return wrong("write --ssh %u@HOST, and keys with %u or %r in their names", "login needs a login of each user's")
	case m == slurm.AsToken && (s.REST == "" || s.TokenFile == "" && len(s.TokenCommand) == 0 && s.TokenKey == ""):
		return wrong("add --rest URL and token_key, token_command or token_file", "token needs slurmrestd and a place where tokens come from")
	case (m == slurm.AsUID || m == slurm.AsOwner) && s.REST != "":
		return wrong("choose identity token, or leave rest", "%s is for commands, and slurmrestd submits", m)
	case m == slurm.AsOwner && len(s.becomeCommand()) == 0 && !s.isLocalRoot():
		return wrong("add become: sudo,-n,-u,%u,--", "owner needs words before a user's command, or root")
	case m == slurm.AsUID && s.Local && os.Geteuid() != 0:
		return wrong("choose identity owner with become, or run the server as root", "uid is for root, and this server is not")
	}
	return nil
}

func modeWord(m slurm.Mode) string {
	if m == slurm.AsService {
		return service
	}
	return string(m)
}
