package podspec

import (
	"fmt"
	"path"
	"strings"
	"unicode"
)

const (
	lowerLetters = "abcdefghijklmnopqrstuvwxyz"
	digits       = "0123456789"
	nameLetters  = lowerLetters + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits + "-._"
)

// isDNSPart reports whether a text is a label of a DNS name, but for its length: Kubernetes bounds whole
// names alone.
func isDNSPart(s string) bool {
	return s != "" && strings.Trim(s, lowerLetters+digits+"-") == "" && s[0] != '-' && s[len(s)-1] != '-'
}

// CheckLabel reports why a text is no label of a DNS name (RFC 1123).
func CheckLabel(s string) error {
	if !isDNSPart(s) || len(s) > 63 {
		return fmt.Errorf("%.70q is not made of lower case letters, digits and inner hyphens, 63 of them at most", s)
	}
	return nil
}

// CheckSubdomain reports why a text is no DNS name (RFC 1123).
func CheckSubdomain(s string) error {
	if len(s) > 253 {
		return fmt.Errorf("%.70q has %d characters; at most 253", s, len(s))
	}
	for part := range strings.SplitSeq(s, ".") {
		if !isDNSPart(part) {
			return fmt.Errorf("%.70q is not made of lower case letters, digits, and inner hyphens and dots", s)
		}
	}
	return nil
}

// CheckEnvName reports why a text is no name of a variable.
func CheckEnvName(s string) error {
	if s == "" || len(s) > 256 || strings.Trim(s, nameLetters) != "" || strings.Contains(digits, s[:1]) {
		return fmt.Errorf("%.70q is not made of letters, digits, underscores, hyphens and dots, or begins with a digit", s)
	}
	return nil
}

// checkKey reports why a text is no key of a ConfigMap or Secret: each is the name of a file.
func checkKey(s string) error {
	if s == "" || len(s) > 253 || strings.Trim(s, nameLetters) != "" || s == "." || strings.HasPrefix(s, "..") {
		return fmt.Errorf("the key %.70q is not made of letters, digits, underscores, hyphens and dots", s)
	}
	return nil
}

// asDigits is a name with a digit in the place of what stands for a number.
var asDigits = strings.NewReplacer("{i}", "0", "{i+1}", "0", "{task}", "0")

// checkNames reports names of a role that Kubernetes does not take.
func (r *Role) checkNames(p *PodTemplate) error {
	if err := CheckLabel(r.Name); err != nil {
		return fmt.Errorf("the name %w", err)
	}
	if err := CheckSubdomain(asDigits.Replace(r.PodName)); err != nil {
		return fmt.Errorf("the name of its pods %w", err)
	}
	for what, name := range map[string]string{"subdomain": asDigits.Replace(r.Subdomain), "spec.subdomain": p.Spec.Subdomain, "spec.hostname": p.Spec.Hostname} {
		if err := CheckLabel(name); name != "" && err != nil {
			return fmt.Errorf("%s %w", what, err)
		}
	}
	for _, e := range r.Env {
		if err := CheckEnvName(e.Name); err != nil {
			return fmt.Errorf("the name of a variable %w", err)
		}
	}
	for name := range r.Files {
		if !path.IsAbs(name) || path.Clean(name) != name || name == "/" || strings.ContainsFunc(name, unicode.IsControl) {
			return fmt.Errorf("the file %.70q has no absolute, clean name", name)
		}
	}
	for _, list := range [][]Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			for _, e := range list[i].Env {
				if err := CheckEnvName(e.Name); err != nil {
					return fmt.Errorf("the name of a variable %w", err)
				}
			}
			if err := CheckLabel(list[i].Name); list[i].Name != "" && err != nil {
				return fmt.Errorf("the name of a container %w", err)
			}
		}
	}
	for i := range p.Spec.Volumes {
		if err := CheckLabel(p.Spec.Volumes[i].Name); err != nil {
			return fmt.Errorf("the name of a volume %w", err)
		}
	}
	return nil
}

// checkNames reports names of a set that Kubernetes does not take.
func (s *Set) checkNames() error {
	if err := CheckSubdomain(s.Name); s.Name != "" && err != nil {
		return fmt.Errorf("the name %w", err)
	}
	if err := CheckLabel(s.Namespace); s.Namespace != "" && err != nil {
		return fmt.Errorf("the namespace %w", err)
	}
	for i := range s.Services {
		if err := CheckLabel(s.Services[i].Name); err != nil {
			return fmt.Errorf("the name of a Service %w", err)
		}
	}
	for i := range s.ConfigMaps {
		c := &s.ConfigMaps[i]
		if err := CheckSubdomain(c.Name); err != nil {
			return fmt.Errorf("the name of a ConfigMap %w", err)
		}
		for key := range c.Data {
			if err := checkKey(key); err != nil {
				return fmt.Errorf("ConfigMap %s: %w", c.Name, err)
			}
		}
		for key := range c.Binary {
			if err := checkKey(key); err != nil {
				return fmt.Errorf("ConfigMap %s: %w", c.Name, err)
			}
		}
	}
	for i := range s.Secrets {
		c := &s.Secrets[i]
		if err := CheckSubdomain(c.Name); err != nil {
			return fmt.Errorf("the name of a Secret %w", err)
		}
		for _, key := range c.Keys {
			if err := checkKey(key); err != nil {
				return fmt.Errorf("Secret %s: %w", c.Name, err)
			}
		}
	}
	return nil
}
