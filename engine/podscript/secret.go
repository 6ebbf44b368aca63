package podscript

import (
	"fmt"
	"slices"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// secretKeys are the keys of a Secret that the set names. whole says that all of them are asked for, which
// only a Secret of the same file can tell; known is false for an optional one that is not there.
func (r *role) secretKeys(name string, whole, optional bool, path string) (keys []string, known bool, err error) {
	i := slices.IndexFunc(r.set.Secrets, func(s podspec.Secret) bool { return s.Name == name })
	switch {
	case i < 0:
		return nil, false, refuseAbsent(optional, path, "Secret", name)
	case whole && r.set.Secrets[i].Foreign:
		return nil, false, refuseField(path, "name its keys one by one (secretKeyRef, items), or add the Secret to the file", "nobody knows which keys the Secret %s has: it is not in the file", name)
	}
	return r.set.Secrets[i].Keys, true, nil
}

// secretValue is an expression for a value that the launch hands over.
func (r *role) secretValue(name, key string, optional bool, path string) (v value, there bool, err error) {
	n, err := r.secrets.secretNumber(name, key)
	switch {
	case err == nil:
		r.secrets.used[n].variable = true
		return shellText(fmt.Sprintf("${_cox_secret[%d]}", n)), true, nil
	case optional:
		return nil, false, nil
	}
	return nil, false, refuseField(path, fmt.Sprintf("store it (cox secret set %s), or write optional: true", podspec.StoreName(name, key)), "the job is given no value for the key %q of the Secret %s", key, name)
}

// secretTable numbers the secrets that a script reads.
type secretTable struct {
	given []job.Secret // of the job
	used  []usedSecret
}

// usedSecret says what a script makes of a secret.
type usedSecret struct {
	job.Secret
	variable, file bool
}

// secretNumber is the place of a key of a Secret in the script's array of secrets.
func (t *secretTable) secretNumber(name, key string) (int, error) {
	stored := podspec.StoreName(name, key)
	i := slices.IndexFunc(t.given, func(s job.Secret) bool { return s.Name == stored })
	if i < 0 {
		return 0, fmt.Errorf("there is no secret %s", stored)
	}
	if n := slices.IndexFunc(t.used, func(u usedSecret) bool { return u.Secret == t.given[i] }); n >= 0 {
		return n, nil
	}
	t.used = append(t.used, usedSecret{Secret: t.given[i]})
	return len(t.used) - 1, nil
}

// placeOf is the file in which the launch hands over a secret, as a word of the shell.
func placeOf(s *job.Secret) string { return `"$COX_SECRETS_DIR/"` + quoteWord(s.FileName()) }
