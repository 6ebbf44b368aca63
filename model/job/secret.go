package job

import (
	"fmt"
	"regexp"
	"strings"
)

// Secret is a value of the job's owner that a launch hands over: the value itself stands neither here nor
// in the journal. Exactly one of Env and File is given.
type Secret struct {
	Name string `json:"name"`           // under which its owner keeps it
	Env  string `json:"env,omitempty"`  // variable that has the value
	File string `json:"file,omitempty"` // name of a file with the value in $COX_SECRETS_DIR
	Kept string `json:"kept,omitempty"` // set of values that came with the submission, which has it; empty: its owner keeps it by its name
}

// keptLength is that of a name of a set of values, in hexadecimal digits.
const keptLength = 32

// MostSecrets is how many secrets a job may have.
const MostSecrets = 32

var (
	secretName   = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)
	secretFile   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// CheckSecretName reports why a text is no name of a secret.
func CheckSecretName(name string) error {
	if !secretName.MatchString(name) {
		return fmt.Errorf("%.70q is no name of a secret: lower case letters, digits, hyphens, dots", name)
	}
	return nil
}

// SecretVariable is the variable of a secret that names none: its name in upper case, with _ for all but
// letters and digits.
func SecretVariable(name string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return r
	}, name))
}

// FileName is the name of the file with its value in the directory that a launch hands over.
func (s *Secret) FileName() string {
	if s.File != "" {
		return s.File
	}
	return ".env." + s.Env
}

// Check reports what is wrong with a secret.
func (s *Secret) Check() error {
	if err := CheckSecretName(s.Name); err != nil {
		return err
	}
	switch {
	case s.Kept != "" && (len(s.Kept) != keptLength || strings.Trim(s.Kept, "0123456789abcdef") != ""):
		return fmt.Errorf("secret %s: %.70q is no name of a set", s.Name, s.Kept)
	case (s.Env == "") == (s.File == ""):
		return fmt.Errorf("secret %s: one of env and file is needed", s.Name)
	case s.Env != "" && (!variableName.MatchString(s.Env) || strings.HasPrefix(s.Env, "SLURM_") || strings.HasPrefix(s.Env, "COX_") || s.Env == "PATH" || strings.HasPrefix(s.Env, "LD_")):
		return fmt.Errorf("secret %s: %.70q is no variable that a secret may set", s.Name, s.Env)
	case s.File != "" && (!secretFile.MatchString(s.File) || s.File == ".."):
		return fmt.Errorf("secret %s: %.70q is no name of a file; no slashes: it stands in $COX_SECRETS_DIR", s.Name, s.File)
	}
	return nil
}

// checkSecrets reports what is wrong with the secrets of a job.
func (s *Spec) checkSecrets() error {
	if len(s.Secrets) > MostSecrets {
		return fmt.Errorf("%d secrets are more than %d", len(s.Secrets), MostSecrets)
	}
	seen := map[string]bool{}
	for i := range s.Secrets {
		one := &s.Secrets[i]
		if err := one.Check(); err != nil {
			return err
		}
		for _, place := range []string{"env " + one.Env, "file " + one.File} {
			if seen[place] && !strings.HasSuffix(place, " ") {
				return fmt.Errorf("two secrets have the %s", place)
			}
			seen[place] = true
		}
	}
	return nil
}
