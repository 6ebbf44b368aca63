package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// etcdAddress is that of the only member of etcd, or the first, inside the lab.
const etcdAddress = "127.0.0.1:2379"

// etcdMember is one of the members; they are counted from 0.
type etcdMember struct {
	name   string // as a daemon
	client string // address
	peer   string
	dir    string // of its data, in the lab's folder
}

func etcdAt(i int) etcdMember {
	m := etcdMember{name: "etcd", client: fmt.Sprintf("127.0.0.1:%d", 2379+10*i), peer: fmt.Sprintf("127.0.0.1:%d", 2380+10*i), dir: "etcd"}
	if i > 0 {
		m.name += fmt.Sprintf(".%d", i+1)
		m.dir += fmt.Sprint(i + 1)
	}
	return m
}

func (l *Lab) etcdMembers() (all []etcdMember) {
	for i := range max(l.config.Etcds, 1) {
		all = append(all, etcdAt(i))
	}
	return all
}

// etcdServers is where an apiserver finds etcd.
func (l *Lab) etcdServers() string {
	var all []string
	for _, m := range l.etcdMembers() {
		all = append(all, "http://"+m.client)
	}
	return strings.Join(all, ",")
}

// etcdDaemons are the daemons of etcd.
func (l *Lab) etcdDaemons() (all []*daemon) {
	var peers []string
	for _, m := range l.etcdMembers() {
		peers = append(peers, m.name+"=http://"+m.peer)
	}
	for _, m := range l.etcdMembers() {
		all = append(all, &daemon{name: m.name, words: []string{
			filepath.Join(l.programs, "kube"), "etcd", "--name=" + m.name, "--data-dir=" + l.labFile(m.dir),
			"--listen-client-urls=http://" + m.client, "--advertise-client-urls=http://" + m.client,
			"--listen-peer-urls=http://" + m.peer, "--initial-advertise-peer-urls=http://" + m.peer, "--initial-cluster=" + strings.Join(peers, ","),
			"--log-level=warn", "--unsafe-no-fsync", // a killed etcd loses nothing by it, a killed machine would
		}})
	}
	return all
}

// etcdStatus is what a member says of itself.
type etcdStatus struct {
	etcdMember
	id    string
	leads bool
}

// etcdAnswers are the members that answer.
func (l *Lab) etcdAnswers(ctx context.Context) (all []etcdStatus) {
	for _, m := range l.etcdMembers() {
		var now struct {
			Header struct {
				ID string `json:"member_id"`
			} `json:"header"`
			Leader string `json:"leader"`
		}
		if l.callEtcd(ctx, m.client, "/v3/maintenance/status", "{}", &now) == nil {
			all = append(all, etcdStatus{m, now.Header.ID, now.Leader == now.Header.ID})
		}
	}
	return all
}

// Leader is the member of etcd that leads, by its name for Kill, Freeze and Restart: "etcd", "etcd.2" …
// Where none does it waits for one.
func (l *Lab) Leader(t testing.TB) (name string) {
	t.Helper()
	if err := testcluster.Await(t.Context(), "a leader of etcd", func() bool {
		for _, m := range l.etcdAnswers(t.Context()) {
			if m.leads {
				name = m.name
			}
		}
		return name != ""
	}); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
	return name
}

// MoveLeader has another member of etcd lead, and returns which when it does.
func (l *Lab) MoveLeader(t testing.TB) (name string) {
	t.Helper()
	was, tries := l.Leader(t), 0
	if err := testcluster.Await(t.Context(), "another leader of etcd than "+was, func() bool {
		all := l.etcdAnswers(t.Context())
		for i, m := range all {
			switch {
			case m.leads && m.name != was:
				name = m.name
				return true
			case m.leads && len(all) > 1:
				to := all[(i+1+tries%(len(all)-1))%len(all)]
				tries++ // one that is behind takes too long, which is no error of the test's
				_ = l.callEtcd(t.Context(), m.client, "/v3/maintenance/transfer-leadership", `{"targetID":"`+to.id+`"}`, nil)
			}
		}
		return false
	}); err != nil {
		t.Fatalf("%v\n%s", err, l.Logs())
	}
	return name
}

// DialEtcd connects to etcd, to the first of its members.
func (l *Lab) DialEtcd(ctx context.Context) (net.Conn, error) { return l.Dial(ctx, etcdAddress) }

// Compact has etcd forget all that was before now, as it does by itself every five minutes.
func (l *Lab) Compact(t testing.TB) {
	t.Helper()
	var now struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := l.callEtcd(t.Context(), etcdAddress, "/v3/kv/range", `{"key":"AA=="}`, &now); err != nil {
		t.Fatal(err)
	}
	if err := l.callEtcd(t.Context(), etcdAddress, "/v3/kv/compaction", `{"physical":true,"revision":"`+now.Header.Revision+`"}`, nil); err != nil {
		t.Fatal(err)
	}
}

// callEtcd asks a member of etcd something, in JSON.
func (l *Lab) callEtcd(ctx context.Context, address, path, body string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	way := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx, address) }}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return err
	}
	r, err := (&http.Client{Transport: way}).Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return err
	case r.StatusCode != http.StatusOK:
		return fmt.Errorf("etcd: %s: %s: %s", path, r.Status, text)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
