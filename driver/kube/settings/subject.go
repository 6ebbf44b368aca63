package settings

import (
	"cmp"
	"strings"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// ParseIdentity reads as whom objects are made: "user:NAME", "serviceaccount:NAME" of the job's
// own namespace, or "serviceaccount:NAMESPACE:NAME".
func ParseIdentity(text string) (Subject, error) {
	if name, ok := strings.CutPrefix(text, "serviceaccount:"); ok && name != "" && !strings.Contains(name, ":") {
		return Subject{Kind: "ServiceAccount", Name: name}, nil
	}
	who, err := ParseSubject(text)
	if err != nil || who.Kind == "Group" {
		return who, fault.New(fault.Invalid, "%.70q is nobody as whom objects could be made", text).
			Advise("write user:NAME, serviceaccount:NAME of the job's own namespace, or serviceaccount:NAMESPACE:NAME")
	}
	return who, nil
}

// inNamespace is a service account that is that of each job's namespace, for one of these.
func (s Subject) inNamespace(namespace string) Subject {
	if s.Kind == "ServiceAccount" {
		s.Namespace = cmp.Or(s.Namespace, namespace)
	}
	return s
}

// UserName is what the API server calls a user or a service account.
func (s Subject) UserName() string {
	if s.Kind == "ServiceAccount" {
		return "system:serviceaccount:" + s.Namespace + ":" + s.Name
	}
	return s.Name
}

// SettingText is what ParseIdentity reads.
func (s Subject) SettingText() string {
	switch {
	case s.Kind == "User":
		return "user:" + s.Name
	case s.Namespace == "":
		return "serviceaccount:" + s.Name
	}
	return "serviceaccount:" + s.Namespace + ":" + s.Name
}

// Subject is who has rights.
type Subject struct{ Kind, Namespace, Name string }

// ParseSubject reads "user:NAME", "group:NAME", "serviceaccount:NAMESPACE:NAME".
func ParseSubject(text string) (Subject, error) {
	kind, name, _ := strings.Cut(text, ":")
	switch {
	case name == "":
	case kind == "user":
		if ns, account, ok := strings.Cut(strings.TrimPrefix(name, "system:serviceaccount:"), ":"); ok && strings.HasPrefix(name, "system:serviceaccount:") {
			return Subject{"ServiceAccount", ns, account}, nil
		}
		return Subject{Kind: "User", Name: name}, nil
	case kind == "group":
		return Subject{Kind: "Group", Name: name}, nil
	case kind == "serviceaccount":
		if ns, account, ok := strings.Cut(name, ":"); ok && ns != "" && account != "" {
			return Subject{"ServiceAccount", ns, account}, nil
		}
	}
	return Subject{}, fault.New(fault.Invalid, "%.70q names nobody who could have rights", text).Advise("write user:NAME, group:NAME or serviceaccount:NAMESPACE:NAME")
}
