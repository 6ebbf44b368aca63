package job

import (
	"fmt"
	"strings"
	"time"
)

// Bounds of what a job serves and of the part that it is.
const (
	mostPorts      = 32
	mostPortName   = 15 // characters, as in Kubernetes
	mostProbeTime  = 24 * time.Hour
	mostLookTime   = time.Minute // of one look of a probe
	mostController = 300         // bytes of a name
)

// check reports the first field whose value no part can have.
func (p *Part) check() error {
	if p == nil {
		return nil
	}
	switch kind, name, _ := strings.Cut(p.Controller, "/"); {
	case kind == "" || name == "" || len(p.Controller) > mostController:
		return fmt.Errorf("part.controller %.40q is not KIND/NAME of at most %d bytes", p.Controller, mostController)
	case p.Revision == 0:
		return fmt.Errorf("part.revision counts from 1")
	}
	return nil
}

// check reports the first field whose value nothing that serves can have.
func (s *Serve) check() error {
	if s == nil {
		return nil
	}
	if len(s.Ports) == 0 || len(s.Ports) > mostPorts {
		return fmt.Errorf("serve.ports: %d ports are not between 1 and %d", len(s.Ports), mostPorts)
	}
	for i, p := range s.Ports {
		if err := p.check(); err != nil {
			return fmt.Errorf("serve.ports[%d].%w", i, err)
		}
		for _, o := range s.Ports[:i] {
			switch {
			case o.Name == p.Name:
				return fmt.Errorf("serve.ports: two ports are named %q", p.Name)
			case o.Number == p.Number && p.Number > 0:
				return fmt.Errorf("serve.ports: %s and %s have the same number, %d", o.Name, p.Name, p.Number)
			}
		}
	}
	if s.Drain < 0 || s.Drain > mostProbeTime {
		return fmt.Errorf("serve.drain %s is not between 0 and %s", s.Drain, mostProbeTime)
	}
	for _, c := range []struct {
		name string
		p    *Probe
	}{{"startup", s.Startup}, {"readiness", s.Readiness}, {"liveness", s.Liveness}} {
		if err := c.p.check(s); err != nil {
			return fmt.Errorf("serve.%s: %w", c.name, err)
		}
	}
	return nil
}

func (p *Port) check() error {
	letters := "abcdefghijklmnopqrstuvwxyz"
	switch {
	case p.Name == "" || len(p.Name) > mostPortName:
		return fmt.Errorf("name %.40q has not between 1 and %d characters", p.Name, mostPortName)
	case strings.Trim(p.Name, letters+"0123456789-") != "" || !strings.Contains(letters, p.Name[:1]) || strings.HasSuffix(p.Name, "-"):
		return fmt.Errorf("name %q is not made of lower case letters, digits and hyphens, a letter first", p.Name)
	case p.Number < 0 || p.Number > 65535:
		return fmt.Errorf("number %d is not between 1 and 65535, or 0 for one that is chosen", p.Number)
	}
	return nil
}

// check reports what is wrong with a probe of s.
func (p *Probe) check(s *Serve) error {
	if p == nil {
		return nil
	}
	kinds := 0
	for _, given := range []bool{p.HTTP != "", p.TCP, len(p.Exec) > 0} {
		if given {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return fmt.Errorf("needs exactly one of http, tcp and exec")
	case p.HTTP != "" && !strings.HasPrefix(p.HTTP, "/"):
		return fmt.Errorf("http %.40q is no path that begins with /", p.HTTP)
	case strings.ContainsFunc(p.HTTP, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }):
		return fmt.Errorf("http %.40q has characters that no path of a URL has", p.HTTP)
	case p.Port != "" && len(p.Exec) > 0:
		return fmt.Errorf("port: a command looks at no port")
	case s.PortNamed(p.Port) == nil:
		return fmt.Errorf("port: there is no port %q", p.Port)
	}
	for _, c := range []struct {
		name    string
		d, most time.Duration
	}{{"delay", p.Delay, mostProbeTime}, {"every", p.Every, mostProbeTime}, {"timeout", p.Timeout, mostLookTime}} {
		if c.d < 0 || c.d > c.most {
			return fmt.Errorf("%s %s is not between 0 and %s", c.name, c.d, c.most)
		}
	}
	for _, c := range []struct {
		name string
		n    int
	}{{"failures", p.Failures}, {"passes", p.Passes}} {
		if err := checkCount(c.name, c.n); err != nil {
			return err
		}
	}
	return nil
}
