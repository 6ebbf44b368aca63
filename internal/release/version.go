package release

import (
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// Version is the version of a release as Go writes it: v1.2.3, v1.2.3-rc.1, or the
// pseudo-version of a commit without a tag, v0.0.0-20261128140444-f4e03ae90000.
type Version string

// versionForm is the part of semantic versions that all of Go, Debian, Helm and image tags take.
var versionForm = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// ParseVersion reads a version. One with a plus sign is refused: image tags have none.
func ParseVersion(s string) (Version, error) {
	if !versionForm.MatchString(s) {
		return "", fmt.Errorf("%q is not a version: write it as v1.2.3 or v1.2.3-rc.1", s)
	}
	return Version(s), nil
}

// Plain is the version without the v, for names of files, the chart and image tags.
func (v Version) Plain() string { return strings.TrimPrefix(string(v), "v") }

// Debian is the version as dpkg compares it: a release candidate is older than its release.
func (v Version) Debian() string {
	number, pre, found := strings.Cut(v.Plain(), "-")
	if !found {
		return number
	}
	return number + "~" + strings.ReplaceAll(pre, "-", ".")
}

// Source names the sources of a release.
type Source struct {
	Dir     string // the root of the repository, absolute
	Version Version
	Time    time.Time // of the commit, in UTC; the time of everything in the archives
}

// FindSource asks git for what version and epoch leave out: the version is the tag of the
// commit or a pseudo-version, the time that of the commit. Epoch is a number of seconds, as
// SOURCE_DATE_EPOCH has it. Sources with changes that are not committed need both.
func FindSource(dir, version, epoch string) (Source, error) {
	s := Source{Dir: dir}
	if version == "" || epoch == "" {
		changes, err := askGit(dir, "status", "--porcelain")
		if err != nil {
			return s, fmt.Errorf("%w: outside of a git checkout set VERSION and SOURCE_DATE_EPOCH", err)
		}
		if changes != "" {
			return s, fmt.Errorf("the work tree has changes or files that are not committed: commit them, or set VERSION and SOURCE_DATE_EPOCH")
		}
	}
	if epoch == "" {
		var err error
		if epoch, err = askGit(dir, "log", "-1", "--format=%ct"); err != nil {
			return s, err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return s, fmt.Errorf("SOURCE_DATE_EPOCH is %q, and not a number of seconds since 1970", epoch)
	}
	s.Time = time.Unix(seconds, 0).UTC()
	if version == "" {
		tags, err := askGit(dir, "tag", "--points-at", "HEAD", "--list", "v*")
		if err != nil {
			return s, err
		}
		for tag := range strings.FieldsSeq(tags) {
			if version == "" || semver.Compare(tag, version) > 0 {
				version = tag
			}
		}
	}
	if version == "" {
		commit, err := askGit(dir, "rev-parse", "HEAD")
		if err != nil {
			return s, err
		}
		version = "v0.0.0-" + s.Time.Format("20060102150405") + "-" + commit[:12]
	}
	s.Version, err = ParseVersion(version)
	return s, err
}

func askGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w", args[0], dir, err)
	}
	return strings.TrimSpace(string(out)), nil
}
