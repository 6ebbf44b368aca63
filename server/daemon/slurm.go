package daemon

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"

	"github.com/coxswain-sched/coxswain/driver/slurm"
	"github.com/coxswain-sched/coxswain/driver/slurm/command"
	locks "github.com/coxswain-sched/coxswain/driver/slurm/lockdir"
	"github.com/coxswain-sched/coxswain/driver/slurm/rest"
	"github.com/coxswain-sched/coxswain/driver/slurm/site"
	"github.com/coxswain-sched/coxswain/engine"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/job"
)

// openSlurm opens the engine of a site's own Slurm. The site need not answer: its commands,
// its slurmrestd and the directory of locks are first asked when something is wanted of them.
func openSlurm(_ context.Context, name string, settings json.RawMessage, at Place) (engine.Engine, error) {
	var set slurmSettings
	if err := ReadSettings(settings, &set); err != nil {
		return nil, err
	}
	if err := set.checkSettings(); err != nil {
		return nil, err
	}
	cfg := slurm.Config{Root: at.Dir, Pool: name, Placed: set.Placed, Privileged: set.isPrivileged(), Identity: set.submitIdentity(), Options: set.jobOptions(), Containers: set.ContainerRuntime, Log: at.Log}
	var err error
	if cfg.ServicePorts, err = set.servicePorts(); err != nil {
		return nil, err
	}
	if at.Uploads != nil {
		cfg.UploadDir, cfg.Uploads, cfg.UploadRoom = set.UploadDir, at.Uploads, at.Room
	}
	run, err := set.commandRunner(&cfg, at.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Secrets = set.secretPlace(run)
	if cfg.Site, err = set.openSite(run); err != nil {
		return nil, closeToo(err, run)
	}
	e, err := slurm.Open(cfg)
	if err != nil {
		return nil, closeToo(err, cfg.Site)
	}
	return e, nil
}

func closeToo(err error, c io.Closer) error {
	if c == nil {
		return err
	}
	return errors.Join(err, c.Close())
}

// commandRunner is where commands run, and says where the locks and the output files are: on the
// login node if there is one, else here. nil: there are no commands.
func (s *slurmSettings) commandRunner(cfg *slurm.Config, dir string) (command.Runner, error) {
	var env []string
	if s.Conf != "" {
		env = append(env, "SLURM_CONF="+s.Conf)
	}
	if s.SSH == "" {
		cfg.Room = s.lockRoom(func(context.Context) (locks.Directory, error) { return locks.Open(s.Shared) })
		if !s.Local {
			return nil, nil
		}
		here := &command.Here{Env: env, Commands: s.Commands, Become: s.Become}
		if len(s.Become) > 0 && cfg.Identity.Mode != slurm.AsService {
			cfg.Files = func(ctx context.Context, o job.Owner, name string) (io.ReadCloser, error) {
				return command.OpenFileAs(ctx, here, o.User, name)
			}
		}
		return here, nil
	}
	login, err := s.sshLogin(dir, env)
	if err != nil {
		return nil, err
	}
	cfg.Room = s.lockRoom(func(ctx context.Context) (locks.Directory, error) { return command.OpenRoom(ctx, login, s.Shared) })
	cfg.Files = func(ctx context.Context, o job.Owner, name string) (io.ReadCloser, error) {
		switch {
		case cfg.Identity.Mode == slurm.AsService: // a job may do what the login may
			return command.OpenFile(ctx, login, name)
		case !s.hasUserLogins() && len(s.becomeCommand()) == 0:
			return nil, fault.New(fault.Unsupported, "%s is %s's, and %s cannot read it as %[2]s", name, o.User, s.SSH).Advise("add become to the settings of pool: sudo,-n,-u,%%u,--")
		}
		return command.OpenFileAs(ctx, login, o.User, name)
	}
	return login, nil
}

// secretPlace has the values of jobs' secrets beside the locks; nil: this process has no way to write files that
// are the jobs' users'.
func (s *slurmSettings) secretPlace(run command.Runner) slurm.SecretPlace {
	mode, own := s.submitIdentity().Mode, ""
	switch {
	case run == nil: // by slurmrestd alone: the locks are on this machine
		own, run = s.User, &command.Here{}
		if me, err := user.Current(); err != nil || os.Geteuid() != 0 && (mode != slurm.AsService || own != "" && own != me.Username) {
			return nil
		}
	case s.SSH != "" && mode != slurm.AsService && mode != slurm.AsUID && !s.hasUserLogins() && len(s.becomeCommand()) == 0:
		return nil
	}
	return command.NewSecretDir(run, mode == slurm.AsUID, own)
}

// lockRoom is where the locks are.
func (s *slurmSettings) lockRoom(open func(context.Context) (locks.Directory, error)) locks.Directory {
	if dir := s.onNodes(); dir != "" {
		return locks.OnNodes(dir)
	}
	return locks.OpenLater(s.Shared, open)
}

// openSite is the way into the cluster.
func (s *slurmSettings) openSite(run command.Runner) (site.Site, error) {
	var by site.Site
	switch {
	case run != nil && s.submitIdentity().Mode == slurm.AsUID:
		by = command.NewUID(run)
	case run != nil:
		by = command.New(run)
	}
	if s.REST == "" {
		return by, nil
	}
	c := rest.Config{URL: s.REST, Version: s.RESTVersion, User: s.User, Tokens: s.tokenIssuer(), Commands: by}
	if s.RESTCA != "" {
		pem, err := os.ReadFile(s.RESTCA)
		if err != nil {
			return nil, fault.New(fault.Invalid, "settings: rest_ca: %w", err).Advise("name a file with the certificates (PEM) that slurmrestd's is checked by")
		}
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fault.New(fault.Invalid, "settings: rest_ca: %s has no certificate in PEM form", s.RESTCA).Advise("openssl x509 -in %s -text shows what it has", s.RESTCA)
		}
	}
	out, err := rest.New(c)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// tokenIssuer is where tokens come from; nil: none are sent.
func (s *slurmSettings) tokenIssuer() rest.Issuer {
	switch {
	case s.TokenFile != "":
		return rest.File(s.TokenFile)
	case len(s.TokenCommand) > 0:
		c := &rest.Command{Words: s.TokenCommand}
		if s.Conf != "" {
			c.Env = []string{"SLURM_CONF=" + s.Conf}
		}
		return c
	case s.TokenKey != "":
		return &rest.Key{Path: s.TokenKey}
	}
	return nil
}

// longest is how long the name of the folder of a connection's socket may be: the system
// takes 104 or 108 bytes, and ssh adds the socket's own name and, for a moment, more.
const longest = 104 - len("/.") - 40 - 17

// sshLogin is an ssh whose socket is in dir, or in a folder of its own if that has a long name.
func (s *slurmSettings) sshLogin(dir string, env []string) (command.Runner, error) {
	out := &login{SSH: command.SSH{Login: s.SSH, Dir: filepath.Join(dir, "ssh"), Env: env, Commands: s.Commands, Own: s.User, Become: s.becomeCommand()}}
	if len(out.Dir) <= longest {
		if err := os.MkdirAll(out.Dir, 0o700); err != nil {
			return nil, err
		}
	} else {
		folder, err := os.MkdirTemp("", "cox-ssh-")
		if err != nil {
			return nil, err
		}
		out.Dir, out.folder = folder, folder
	}
	add := func(words ...string) { out.Options = append(out.Options, words...) }
	if s.SSHConfig != "" {
		add("-F", s.SSHConfig)
	}
	if s.SSHPort != 0 {
		add("-p", fmt.Sprint(s.SSHPort))
	}
	if s.SSHKey != "" {
		add("-i", s.SSHKey, "-o", "IdentitiesOnly=yes")
	}
	if s.SSHKnownHosts != "" {
		add("-o", `UserKnownHostsFile="`+s.SSHKnownHosts+`"`)
	}
	return out, nil
}

// login is an SSH with a folder for its socket.
type login struct {
	command.SSH

	folder string // removed when it is closed
}

// Close ends the connection.
func (l *login) Close() error {
	err := l.SSH.Close()
	if l.folder != "" {
		err = errors.Join(err, os.RemoveAll(l.folder))
	}
	return err
}
