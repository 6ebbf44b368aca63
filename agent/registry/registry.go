// Package registry keeps a user's credentials of container registries.
//
// They are in a folder of the user's own, which only that user can read, on the machine that runs
// the jobs. They are in no journal, no job and no answer of the server. The folder has the same
// credentials in two forms: config.json for podman, docker and apptainer, and .credentials (netrc)
// for enroot. Runtimes get the name of a file, so that a password is on no command line.
//
// The package does not ask registries whether a password is right.
package registry

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/containeropt"
)

// Folder is where the credentials of a user are. Its methods are not safe for concurrent use.
type Folder string

// Credential is a login to a registry.
type Credential struct {
	Host     string `json:"host"` // with its port, if it has one
	User     string `json:"user"`
	Password string `json:"-"`
}

// Hub is the registry of images that name none.
const Hub = "docker.io"

// hubKey is how docker and apptainer call Hub in config.json.
const hubKey = "https://index.docker.io/v1/"

// FolderOf is the folder of the user whose variables get reads: below XDG_CONFIG_HOME, or else in
// the home directory. Empty: neither is set.
func FolderOf(get func(name string) string) Folder {
	config := get("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		home := get("HOME")
		if !filepath.IsAbs(home) {
			return ""
		}
		config = filepath.Join(home, ".config")
	}
	return Folder(filepath.Join(config, "coxswain", "registry"))
}

// AuthFile is the file that podman, docker and apptainer read.
func (d Folder) AuthFile() string { return filepath.Join(string(d), "config.json") }

// netrcFile is the file that enroot reads.
func (d Folder) netrcFile() string { return filepath.Join(string(d), ".credentials") }

// authFile is config.json.
type authFile struct {
	Auths map[string]auth `json:"auths"`
}

type auth struct {
	Auth string `json:"auth"` // base64 of USER:PASSWORD
}

// Load returns the credentials by host; none is no error.
func (d Folder) Load() ([]Credential, error) {
	text, err := os.ReadFile(d.AuthFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var f authFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", d.AuthFile(), err)
	}
	var list []Credential
	for host, a := range f.Auths {
		if host == hubKey {
			continue
		}
		pair, err := base64.StdEncoding.DecodeString(a.Auth)
		user, password, ok := strings.Cut(string(pair), ":")
		if err != nil || !ok {
			return nil, fmt.Errorf("%s: the login of %s cannot be read", d.AuthFile(), host)
		}
		list = append(list, Credential{Host: host, User: user, Password: password})
	}
	slices.SortFunc(list, func(a, b Credential) int { return strings.Compare(a.Host, b.Host) })
	return list, nil
}

// Save replaces the credentials. Nobody else can read the files.
func (d Folder) Save(list []Credential) error {
	f := authFile{Auths: map[string]auth{}}
	var netrc strings.Builder
	for _, c := range list {
		a := auth{Auth: base64.StdEncoding.EncodeToString([]byte(c.User + ":" + c.Password))}
		f.Auths[c.Host] = a
		machine := c.Host
		if c.Host == Hub {
			f.Auths[hubKey] = a
			machine = "auth.docker.io"
		} else if host, _, err := net.SplitHostPort(c.Host); err == nil {
			machine = host
		}
		fmt.Fprintf(&netrc, "machine %s login %s password %s\n", machine, netrcWord(c.User), netrcWord(c.Password))
	}
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	return errors.Join(replaceFile(d.AuthFile(), append(text, '\n')), replaceFile(d.netrcFile(), []byte(netrc.String())))
}

// netrcWord is a word as curl, by which enroot pulls, reads it.
func netrcWord(text string) string {
	if !strings.ContainsAny(text, " \t\"\\") {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// replaceFile writes a file that only its owner can read, in the place of one that may be there.
func replaceFile(name string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// HostOf is the registry that an image comes from; empty: it is a file.
func HostOf(image string) string {
	if containeropt.IsFile(image) {
		return ""
	}
	host, _, more := strings.Cut(containeropt.Reference(image), "/")
	if !more || !strings.ContainsAny(host, ".:") && host != "localhost" {
		return Hub
	}
	return NormalHost(host)
}

// NormalHost is a registry's name as it is kept.
func NormalHost(host string) string {
	switch host {
	case "index.docker.io", "registry-1.docker.io", "hub.docker.com":
		return Hub
	}
	return host
}
