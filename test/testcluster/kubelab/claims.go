package lab

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-sched/coxswain/test/testcluster"
)

// Driver is the name of the driver of Claimable, and of the DeviceClass of its devices.
const Driver = "gpu.example.com"

// Piece is a device that a driver of dynamic resource allocation (DRA) has on a node. It is a
// name and what is said of it.
type Piece struct {
	Name    string         // gpu-0
	Says    map[string]any // its attributes: texts and whole numbers
	Memory  string         // as "80Gi"; empty: not said
	Tainted bool           // it is published with a taint: nobody may have it
	Broken  bool           // it cannot be prepared for a pod; that is not published
}

// Claimable gives nodes, by name, devices that claims are given (DRA), with a DeviceClass of
// them all; again, it says what they are now. It returns when the kubelets know the driver.
// Like a vendor's it prepares no device for two claims at once. It is the daemon "claims.NODE".
func (l *Lab) Claimable(t testing.TB, nodes map[string][]Piece) {
	t.Helper()
	may, err := l.pki.signKey("claims", []string{"system:masters"})
	if err != nil {
		t.Fatal(err)
	}
	for name, pieces := range nodes {
		var all []Device
		for _, p := range pieces {
			all = append(all, Device{ID: p.Name, Ill: p.Broken})
		}
		l.setVendorStock(t, name, "claims", map[string]any{"Resource": Driver, "Devices": all, "API": map[string]string{"Server": l.Server(), "CA": string(l.pki.pem), "Cert": string(may.cert), "Key": string(may.key)}})
	}
	for name := range nodes {
		if err := testcluster.Await(t.Context(), "the driver of "+name, func() bool { return strings.Contains(l.saidBy("claims."+name), "registered\n") }); err != nil {
			t.Fatalf("%v\n%s", err, l.Logs())
		}
	}
	for name, pieces := range nodes { // a kubelet that starts deletes what was published before
		l.Publish(t, name, pieces...)
	}
}

// Publish says which devices a node has, as Claimable does, and of no other. Nobody prepares those
// that Claimable has not named: they are for nodes without machines.
func (l *Lab) Publish(t testing.TB, node string, pieces ...Piece) {
	t.Helper()
	devices := []any{}
	for _, p := range pieces {
		d := map[string]any{"name": p.Name}
		says := map[string]any{}
		for name, v := range p.Says {
			kind := "string"
			if _, ok := v.(int); ok {
				kind = "int"
			}
			says[name] = map[string]any{kind: v}
		}
		d["attributes"] = says
		if p.Memory != "" {
			d["capacity"] = map[string]any{"memory": map[string]any{"value": p.Memory}}
		}
		if p.Tainted {
			d["taints"] = []any{map[string]any{"key": "example.com/ecc", "value": "bad", "effect": "NoSchedule"}}
		}
		devices = append(devices, d)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": map[string]any{"name": node + "-" + Driver},
		"spec": map[string]any{"driver": Driver, "nodeName": node, "pool": map[string]any{"name": node, "generation": 1, "resourceSliceCount": 1}, "devices": devices},
	})
	if err != nil {
		t.Fatal(err)
	}
	l.Apply(t, `{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"`+Driver+`"},"spec":{"selectors":[{"cel":{"expression":"device.driver == '`+Driver+`'"}}],
 "config":[{"opaque":{"driver":"`+Driver+`","parameters":{"apiVersion":"example.com/v1","kind":"GpuConfig","sharing":"none"}}}]}}
---
`+string(text))
}

// saidBy is what a daemon has printed.
func (l *Lab) saidBy(name string) string {
	text, _ := os.ReadFile(l.labFile("log/" + name))
	return string(text)
}

var preparation = regexp.MustCompile(`(?m)^prepared (\S+) (\S*)$`)

// Prepared are the devices that the driver of Claimable has prepared on a node, by the claim,
// sorted.
func (l *Lab) Prepared(node string) map[string][]string {
	out := map[string][]string{}
	for _, m := range preparation.FindAllStringSubmatch(l.saidBy("claims."+node), -1) {
		out[m[1]] = strings.Split(m[2], ",")
	}
	return out
}

// handling is what the driver of Claimable says of a claim.
var handling = regexp.MustCompile(`(?m)^(un)?prepared (\S+)`)

// Held are the claims whose devices that driver has prepared on a node and not given back.
func (l *Lab) Held(node string) map[string]bool {
	out := map[string]bool{}
	for _, m := range handling.FindAllStringSubmatch(l.saidBy("claims."+node), -1) {
		if out[m[2]] = true; m[1] != "" {
			delete(out, m[2])
		}
	}
	return out
}
