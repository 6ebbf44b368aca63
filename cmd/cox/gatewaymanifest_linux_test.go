package main

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-sched/coxswain/model/service"
	lab "github.com/coxswain-sched/coxswain/test/testcluster/kubelab"
)

// authorityFile is a PEM file with a certificate.
func authorityFile(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	s.Close()
	name := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestGatewayManifest: each object is what Kubernetes' own types read, with no field that they do not
// have, and the parts find each other.
func TestGatewayManifest(t *testing.T) {
	r := coxAt(t, "https://cox.example.org", "", "gateway", "manifest", "--ca", authorityFile(t), "--namespace", "edge", "--image", "registry.example.org/cox:1.2", "--type", "LoadBalancer", "--replicas", "2")
	if r.Code != 0 {
		t.Fatalf("exit %d: %s", r.Code, r.Err)
	}
	objects := strings.Split(r.Out, "\n---\n")
	if len(objects) != 3 {
		t.Fatalf("%d objects:\n%s", len(objects), r.Out)
	}
	var authority corev1.ConfigMap
	var gateways appsv1.Deployment
	var front corev1.Service
	for i, into := range []any{&authority, &gateways, &front} {
		text, err := yaml.YAMLToJSON([]byte(objects[i]))
		if err != nil {
			t.Fatalf("%v\n%s", err, objects[i])
		}
		strict := json.NewDecoder(bytes.NewReader(text))
		strict.DisallowUnknownFields()
		if err := strict.Decode(into); err != nil {
			t.Fatalf("%v\n%s", err, objects[i])
		}
	}
	block, _ := pem.Decode([]byte(authority.Data["ca.pem"]))
	if block == nil {
		t.Fatalf("no certificate: %q", authority.Data["ca.pem"])
	}
	if _, err := x509.ParseCertificate(block.Bytes); err != nil {
		t.Error(err)
	}
	pod := &gateways.Spec.Template
	c := &pod.Spec.Containers[0]
	for what, good := range map[string]bool{
		"namespaces":    authority.Namespace == "edge" && gateways.Namespace == "edge" && front.Namespace == "edge",
		"the selector":  gateways.Spec.Selector.MatchLabels["app.kubernetes.io/name"] == pod.Labels["app.kubernetes.io/name"] && front.Spec.Selector["app.kubernetes.io/name"] == pod.Labels["app.kubernetes.io/name"],
		"the type":      front.Spec.Type == corev1.ServiceTypeLoadBalancer && *gateways.Spec.Replicas == 2,
		"the port":      front.Spec.Ports[0].TargetPort.StrVal == c.Ports[0].Name && c.Ports[0].ContainerPort == 8080,
		"the image":     c.Image == "registry.example.org/cox:1.2",
		"the command":   slices.Equal(c.Command, []string{"cox", "gateway", "--server", "https://cox.example.org", "--listen", ":8080", "--state-dir", "/var/lib/cox-gateway/state"}),
		"the token":     c.Env[0].Name == "COX_TOKEN" && c.Env[0].ValueFrom.SecretKeyRef.Name == "cox-gateway" && c.Env[0].ValueFrom.SecretKeyRef.Key == "token",
		"the probe":     c.ReadinessProbe.HTTPGet.HTTPHeaders[0].Value == service.HealthHost && c.ReadinessProbe.HTTPGet.Port.StrVal == "http",
		"the authority": c.Env[1].Name == "SSL_CERT_FILE" && c.Env[1].Value == c.VolumeMounts[1].MountPath+"/ca.pem" && pod.Spec.Volumes[1].ConfigMap.Name == authority.Name,
	} {
		if !good {
			t.Errorf("%s: wrong in\n%s", what, r.Out)
		}
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("no volume %s", m.Name)
		}
	}
}

// TestGatewayManifestIsRefused: what cannot work is refused by name, and nothing is printed.
func TestGatewayManifestIsRefused(t *testing.T) {
	authority := authorityFile(t)
	key := filepath.Join(t.TempDir(), "key.pem")
	text, err := os.ReadFile(authority)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, append(text, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		server string
		args   []string
		says   string
	}{
		{"unix:///run/coxswain/cox.sock", nil, "cannot reach the server at unix:///run/coxswain/cox.sock"},
		{"ssh://login1", nil, "cannot reach the server at ssh://login1"},
		{"http://127.0.0.1:7461", nil, "cannot reach the server at http://127.0.0.1:7461"},
		{"https://localhost:7461", nil, "cannot reach"},
		{"http://cox.example.org", nil, "token would cross the network unencrypted"},
		{"https://cox.example.org", nil, "--ca FILE"},
		{"https://cox.example.org", []string{"--ca", "/nonexistent"}, "--ca: open /nonexistent"},
		{"https://cox.example.org", []string{"--ca", key}, `has a block "PRIVATE KEY"`},
		{"https://cox.example.org", []string{"--ca", "gatewaymanifest_linux_test.go"}, "no certificate in PEM form"},
		{"https://cox.example.org", []string{"--ca", authority, "--type", "ExternalName"}, "--type ExternalName"},
		{"https://cox.example.org", []string{"--ca", authority, "--namespace", "A_b"}, "--namespace A_b"},
		{"https://cox.example.org", []string{"--ca", authority, "--image", "a b"}, "--image a b"},
		{"https://cox.example.org", []string{"--ca", authority, "--replicas", "0"}, "--replicas 0"},
	} {
		r := coxAt(t, c.server, "", append([]string{"gateway", "manifest"}, c.args...)...)
		if r.Code != 2 || r.Out != "" || !strings.Contains(r.Err, c.says) {
			t.Errorf("%s %v: exit %d, want %q: %s", c.server, c.args, r.Code, c.says, r.Err)
		}
	}
}

// TestKubeGatewayManifest has a real API server check the manifest, and its admission of pods at
// the level restricted.
func TestKubeGatewayManifest(t *testing.T) {
	t.Parallel()
	l := lab.Start(t, lab.Config{NoScheduler: true})
	l.Kubectl(t, "create", "namespace", "coxswain")
	l.Kubectl(t, "label", "namespace", "coxswain", "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	r := coxAt(t, "https://cox.example.org", "", "gateway", "manifest", "--ca", authorityFile(t))
	if r.Code != 0 {
		t.Fatalf("exit %d: %s", r.Code, r.Err)
	}
	out, err := l.Try(t.Context(), r.Out, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
	if err != nil || strings.Count(out, "created (server dry run)") != 3 || strings.Contains(out, "arning") {
		t.Errorf("%v\n%s", err, out)
	}
}
