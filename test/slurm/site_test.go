package slurmtest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-sched/coxswain/model/hostlist"
)

var update = flag.Bool("update", false, "write scripts/slurm/site.conf anew")

const siteFile = "../../scripts/slurm/site.conf"

// The lab's site knows every name that the public headers mention.
func TestSite(t *testing.T) {
	want := siteOf(readHeaders(t))
	if *update {
		if err := os.WriteFile(siteFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(siteFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the headers need (-want +got); run this test with -update\n%s", siteFile, diff)
	}
}

// set is a set of names.
type set map[string]bool

func (s set) add(names ...string) {
	for _, n := range names {
		if plain.MatchString(n) {
			s[n] = true
		}
	}
}

func (s set) sorted() []string { return slices.Sorted(maps.Keys(s)) }

// plain are names that slurm.conf can say; placeholders such as <partition> are not.
var plain = regexp.MustCompile(`^[A-Za-z0-9_.+-]+$`)

// siteOf writes the part of slurm.conf that describes a site where the headers'
// names are known. Every node has all features and 8 GPUs of every type.
func siteOf(headers []header) string {
	partitions, features, nodes, licenses := set{}, set{}, set{}, set{}
	types, others := set{}, set{}
	for _, h := range headers {
		for _, v := range h.values("partition") {
			partitions.add(strings.Split(v, ",")...)
		}
		for _, v := range h.values("constraint") {
			features.add(strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune("&|,()[]", r) })...)
		}
		for _, v := range append(h.values("nodelist"), h.values("exclude")...) {
			names, err := hostlist.Expand(v)
			if err == nil {
				nodes.add(names...)
			}
		}
		for _, v := range h.values("licenses") {
			licenses.add(v)
		}
		for _, o := range []string{"gres", "gpus", "gpus-per-node", "gpus-per-task"} {
			for _, v := range h.values(o) {
				types.add(gpuTypes(v, o == "gres")...)
			}
		}
		for _, v := range h.values("gres") {
			for item := range strings.SplitSeq(v, ",") {
				name, _, _ := strings.Cut(item, ":")
				others.add(name)
			}
		}
	}
	delete(others, "gpu")
	var b strings.Builder
	b.WriteString("# A site that knows what public scripts name. Written by go test ./test/slurm -run Site -update.\n")
	fmt.Fprintf(&b, "GresTypes=gpu,%s\nLicenses=%s:100\n", strings.Join(others.sorted(), ","), strings.Join(licenses.sorted(), ":100,"))
	fmt.Fprintf(&b, "NodeName=DEFAULT Sockets=4 CoresPerSocket=64 ThreadsPerCore=2 RealMemory=4000000 TmpDisk=4000000 State=CLOUD Gres=gpu:%s:8,%s:4000 Features=%s\n",
		strings.Join(types.sorted(), ":8,gpu:"), strings.Join(others.sorted(), ":4000,"), strings.Join(features.sorted(), ","))
	for _, list := range []string{"node[1-512]", hostlist.Compress(nodes.without("node", 512))} {
		fmt.Fprintf(&b, "NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1\n", list)
	}
	b.WriteString("PartitionName=DEFAULT Nodes=ALL MaxTime=INFINITE State=UP\nPartitionName=main Default=YES\n")
	delete(partitions, "main")
	for _, p := range partitions.sorted() {
		fmt.Fprintf(&b, "PartitionName=%s\n", p)
	}
	return b.String()
}

// without lists the names that are not among prefix1 to prefixN.
func (s set) without(prefix string, n int) []string {
	rest := maps.Clone(s)
	for i := range n {
		delete(rest, fmt.Sprint(prefix, i+1))
	}
	return rest.sorted()
}

// gpuTypes lists the types of GPU that a value of --gres or of --gpus names.
func gpuTypes(value string, gres bool) []string {
	var out []string
	for item := range strings.SplitSeq(value, ",") {
		if gres {
			var ok bool
			if item, ok = strings.CutPrefix(item, "gpu:"); !ok {
				continue
			}
		}
		if kind, _, ok := strings.Cut(item, ":"); ok || gres && strings.Trim(item, "0123456789") != "" {
			out = append(out, kind)
		}
	}
	return out
}
