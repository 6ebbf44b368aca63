package command

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strconv"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// SecretDir hands the values of jobs' secrets over: as files in a directory of the job's user alone, on a file
// system that the nodes share. The values are in no command's arguments and environment: they go through
// standard input. It is safe for concurrent use.
type SecretDir struct {
	run Runner
	uid bool
	own string
}

// NewSecretDir hands secrets over by a Runner, which stays its owner's. uid says that the Runner is root, who
// does not become the user but gives the files to them. own is the user where none is named; empty: the
// Runner's.
func NewSecretDir(r Runner, uid bool, own string) *SecretDir {
	return &SecretDir{run: r, uid: uid, own: own}
}

// putSecrets makes a directory, whole or not at all: $1 the directory, $2 whose it is to be (empty: it is), then
// names and sizes of files, whose contents are the standard input one after another.
const putSecrets = `[ ! -d "$1" ] || exit 0
umask 077; d=$1 o=$2; shift 2
rm -rf -- "$d.new" && mkdir -- "$d.new" || exit
while [ $# -gt 0 ]; do head -c "$2" >"$d.new/$1" && [ "$(stat -c %s -- "$d.new/$1")" = "$2" ] && chmod 400 -- "$d.new/$1" || exit; shift 2; done
[ -z "$o" ] || chown -R -- "$o" "$d.new" || exit
mv -T -- "$d.new" "$d"`

// Put makes a directory with files, as a user; empty: as the own one. One that is there is left as it is.
func (s *SecretDir) Put(ctx context.Context, user, dir string, files map[string][]byte) error {
	user = cmp.Or(user, s.own)
	owner := ""
	if s.uid && user != "" {
		user, owner = "", user+":" // and the group of a login
	}
	args := []string{"-c", putSecrets, "sh", dir, owner}
	var values bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		args = append(args, path.Base(name), strconv.Itoa(len(files[name])))
		values.Write(files[name])
	}
	return s.runCall(ctx, dir, Call{Name: "sh", Args: args, Stdin: values.Bytes(), User: user})
}

// Remove removes such a directory; none is no error.
func (s *SecretDir) Remove(ctx context.Context, user, dir string) error {
	if user = cmp.Or(user, s.own); s.uid {
		user = ""
	}
	return s.runCall(ctx, dir, Call{Name: "rm", Args: []string{"-rf", "--", dir, dir + ".new"}, User: user})
}

func (s *SecretDir) runCall(ctx context.Context, dir string, c Call) error {
	r, err := s.run.Run(ctx, c)
	switch {
	case err != nil:
		return fault.New(fault.Unavailable, "the directory for the secrets of a job: %w", err)
	case r.Code != 0:
		return fault.New(fault.Unavailable, "the directory %s for the secrets of a job: exit %d: %s", dir, r.Code, oneLine(string(r.Stderr)))
	}
	return nil
}
