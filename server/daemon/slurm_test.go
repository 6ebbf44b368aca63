package daemon

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/model/fault"
)

// TestSlurmUploadDir: a server that cannot give directories to those who run the jobs is told so.
func TestSlurmUploadDir(t *testing.T) {
	root := os.Geteuid() == 0
	for _, c := range []struct {
		settings string
		root     bool   // of which server it is asked
		want     string // in the error; "": none
	}{
		{`{"local":true,"shared":"/s","upload_dir":"/s/up"}`, true, ""},
		{`{"local":true,"shared":"/s","upload_dir":"/s/up"}`, false, ""},
		{`{"ssh":"a","shared":"/s","upload_dir":"/s/up"}`, true, "all jobs run as one user of the cluster"},
		{`{"ssh":"a","shared":"/s","upload_dir":"/s/up"}`, false, ""},
		{`{"ssh":"a","shared":"/s","upload_dir":"/s/up","identity":"owner","become":["sudo","-u","%u"]}`, true, ""},
		{`{"ssh":"a","shared":"/s","upload_dir":"/s/up","identity":"owner","become":["sudo","-u","%u"]}`, false, "this server is not root"},
	} {
		var set slurmSettings
		if err := ReadSettings([]byte(c.settings), &set); err != nil {
			t.Fatal(err)
		}
		if c.root != root {
			continue
		}
		err := set.checkUploadDir()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.settings, err, c.want)
		}
	}
}

// TestSlurmSettings: what is wrong with settings is said with what would mend it.
func TestSlurmSettings(t *testing.T) {
	const shared = `"shared":"/s"`
	for settings, want := range map[string]string{
		``:                             "say how the server reaches the cluster",
		`{"ssh":"a","local":true}`:     "local and ssh: the commands run here or on a",
		`{"ssh":"-oProxyCommand=x"}`:   `ssh: "-oProxyCommand=x" is no login`,
		`{"ssh":"a","ssh_port":70000}`: "70000 is no port",
		`{"local":true}`:               "shared is needed",
		`{"local":true,"locks":"node","placed":true,"shared":"/s"}`:                      "shared and locks: ",
		`{"local":true,"locks":"none"}`:                                                  `"none" is no place for locks, not for shared`,
		`{"local":true,"locks":"node:tmp"}`:                                              `"node:tmp" is no place for locks, not for shared`,
		`{"local":true,"locks":"node:/a b"}`:                                             `"node:/a b" is no place for locks, not for shared`,
		`{"local":true,"locks":"node"}`:                                                  "locks=node needs placed, not shared",
		`{"rest":"unix:/x","locks":"node","placed":true}`:                                "locks=node needs Slurm's commands, not shared",
		`{"local":true,` + shared + `,"upload_dir":"up"}`:                                "upload_dir: up is no absolute name",
		`{"local":true,` + shared + `,"container_runtime":"docker"}`:                     `container_runtime: "docker" is none of pyxis, podman`,
		`{"local":true,` + shared + `,"service_ports":"20000"}`:                          `service_ports: "20000" is no range of ports`,
		`{"local":true,` + shared + `,"service_ports":"20000-20003"}`:                    `service_ports: "20000-20003" is no range of ports`,
		`{"local":true,"shared":"s"}`:                                                    "shared: s is no absolute name",
		`{"local":true,"shared":"/a\"b"}`:                                                `shared: "/a\"b" has a character`,
		`{"local":true,"ssh_key":"/k"}`:                                                  "ssh_key means nothing without ssh",
		`{"local":true,"token_file":"/k"}`:                                               "token_file means nothing without rest",
		`{"local":true,"identity":"uuid"}`:                                               `there is no "uuid"`,
		`{"local":true,"identity":"token"}`:                                              "token needs slurmrestd",
		`{"local":true,"identity":"login"}`:                                              "login needs a login of each user's",
		`{"local":true,"become":["sudo"]}`:                                               "has %u in it",
		`{"ssh":"a","identity":"owner"}`:                                                 "owner needs words before a user's command",
		`{"ssh":"%u@a"}`:                                                                 "as whom is the cluster looked at",
		`{"ssh":"%u@a","user":"x","identity":"owner"}`:                                   "owner with a login of each user's",
		`{"ssh":"a","user":"x"}`:                                                         "user means nothing without rest, or an ssh login",
		`{"rest":"http://a:1","token_key":"/k","identity":"owner"}`:                      "owner is for commands",
		`{"rest":"http://a:1"}`:                                                          "where do tokens for http://a:1 come from?",
		`{"rest":"ftp://a","token_key":"/k",` + shared + `}`:                             "is no address of a slurmrestd",
		`{"rest":"http://a","rest_ca":"/c","token_key":"/k",` + shared + `}`:             "rest_ca means nothing without rest, with an address that begins with https://",
		`{"rest":"https://a","rest_ca":"/no/such","token_key":"/k",` + shared + `}`:      "no such file",
		`{"rest":"http://a:1","token_file":"/t","token_key":"/k"}`:                       "token_file and token_key: tokens come from one place",
		`{"rest":"http://a:1","token_key":"/k","commands":"/b"}`:                         "commands means nothing without local or ssh",
		`{"rest":"http://a:1","token_key":"/k","rest_version":"v0.0.12",` + shared + `}`: "version v0.0.12 is none of",
		`{"local":true,` + shared + `,"options":["-p x"]}`:                               `"-p x" is no long option`,
		`{"local":true,` + shared + `,"options":["--comment=x"]}`:                        "--comment is not for all jobs",
		`{"local":true,` + shared + `,"options":["--partition=x"],"partition":"y"}`:      "--partition is said by partition too",
		`{"local":true,` + shared + `,"partition":"a b"}`:                                `partition: "a b" is no name of one`,
		`{"local":true,` + shared + `,"lcal":true}`:                                      "did you mean local?",
	} {
		if !strings.Contains(settings, shared) && settings != "" && !strings.Contains(want, "shared") {
			settings = strings.TrimSuffix(settings, "}") + "," + shared + "}"
		}
		want, _, _ = strings.Cut(want, ", not ")
		e, err := openSlurm(context.Background(), "b", json.RawMessage(settings), Place{Dir: filepath.Join(t.TempDir(), "b"), Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			_ = e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", settings, err, want)
		} else if fault.Remedy(err) == "" && !strings.Contains(want, "version") && !strings.Contains(want, "address") {
			t.Errorf("%s: %v: no remedy", settings, err)
		}
	}
}

// TestSlurmOpens: an engine is opened although nothing of its site answers, or is there.
func TestSlurmOpens(t *testing.T) {
	dir := t.TempDir()
	for _, settings := range []string{
		`{"local":true,"commands":"/no/such"}`,
		`{"ssh":"nobody@host.invalid","ssh_config":"none","ssh_port":1,"ssh_key":"/no/such","ssh_known_hosts":"/no/such"}`,
		`{"rest":"http://127.0.0.1:1","token_file":"/no/such"}`,
		`{"rest":"unix:/no/such","local":true}`,
		`{"ssh":"%u@host.invalid","user":"x","ssh_key":"/no/such/%u"}`,
		`{"ssh":"host.invalid","identity":"owner","become":["sudo","-n","-u","%u","--"]}`,
		`{"ssh":"root@host.invalid","identity":"uid"}`,
		`{"rest":"http://127.0.0.1:1","token_key":"/no/such","identity":"token"}`,
		`{"rest":"https://host.invalid","token_command":["false"],"ssh":"host.invalid"}`,
		`{"local":true,"locks":"node","placed":true}`,
		`{"ssh":"nobody@host.invalid","locks":"node:/no/such","placed":true}`,
	} {
		if !strings.Contains(settings, "locks") {
			settings = strings.TrimSuffix(settings, "}") + `,"shared":` + string(mustJSON(filepath.Join(dir, "none", "shared"))) + `}`
		}
		e, err := openSlurm(context.Background(), "b", json.RawMessage(settings), Place{Dir: filepath.Join(t.TempDir(), strings.Repeat("long", 20)), Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Errorf("%s: %v", settings, err)
			continue
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func mustJSON(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}
