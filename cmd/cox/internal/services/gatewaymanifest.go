package services

import (
	"crypto/x509"
	_ "embed" // the manifest
	"encoding/json"
	"encoding/pem"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/coxswain-sched/coxswain/api/address"
	"github.com/coxswain-sched/coxswain/api/client"
	"github.com/coxswain-sched/coxswain/cmd/cox/internal/cli"
	"github.com/coxswain-sched/coxswain/model/fault"
	"github.com/coxswain-sched/coxswain/model/service"
)

//go:embed gatewaymanifest.yaml.in
var manifestText string

var manifestTemplate = template.Must(template.New("manifest").Funcs(template.FuncMap{"quote": quoteYAML, "indent": indentText}).Parse(manifestText))

// quoteYAML is a text as a scalar of YAML.
func quoteYAML(text string) (string, error) {
	out, err := json.Marshal(text)
	return string(out), err
}

// indentText is a text for a block scalar, each of its lines indented.
func indentText(spaces int, text string) string {
	in := strings.Repeat(" ", spaces)
	return in + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+in)
}

// gatewayManifest is what the manifest says.
type gatewayManifest struct {
	Server    string // URL
	Namespace string
	Image     string
	Type      string // of the Service
	Replicas  int
	Health    string // host of the probe
	Authority string // PEM of the authority that signed the server's certificate
}

// authorityBytes is the most that a ConfigMap can be asked to hold of certificates.
const authorityBytes = 512 << 10

func gatewayManifestCommand(a *cli.App) *cobra.Command {
	m := gatewayManifest{Health: service.HealthHost}
	var authority string
	cmd := &cobra.Command{
		Use:   "manifest",
		Short: "Print a gateway for Kubernetes, to be applied with kubectl",
		Long: `Prints a Deployment and a Service that run the gateway in a cluster, where the
addresses of pods answer. cox pool check says whether they answer from here.

The gateway reaches the server by --server, an https address that pods can reach.
Its token is in the Secret cox-gateway; the manifest's first lines make it.`,
		Example: `  cox gateway manifest --server https://cox.example.org --ca ca.pem | kubectl apply -f -`,
		Args:    cobra.NoArgs,
		RunE: a.WithServer(func(_ *cobra.Command, c *client.Client, _ []string) error {
			if err := m.check(c.Address()); err != nil {
				return err
			}
			if err := m.readAuthority(authority); err != nil {
				return err
			}
			return manifestTemplate.Execute(a.Out, m)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&m.Namespace, "namespace", "coxswain", "`NAMESPACE` of the gateway")
	fl.StringVar(&m.Image, "image", "coxswain.sh/cox:"+imageTag(cli.Version()), "`IMAGE` of cox")
	fl.StringVar(&m.Type, "type", "ClusterIP", "`TYPE` of the Service: ClusterIP, NodePort or LoadBalancer")
	fl.IntVar(&m.Replicas, "replicas", 1, "how many gateways; a rate limit of a service counts for each of them")
	fl.StringVar(&authority, "ca", "", "`FILE` (PEM) of the authority that signed the server's certificate")
	return cmd
}

// imageTag is the tag of the image of a version; that of a development is latest.
func imageTag(version string) string {
	if strings.HasPrefix(version, "development") || version == "unknown" {
		return "latest"
	}
	return strings.TrimPrefix(strings.ReplaceAll(version, "+", "_"), "v")
}

var (
	dnsLabel  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	imageName = regexp.MustCompile(`^[a-zA-Z0-9][-a-zA-Z0-9._/:@]*$`)
)

// check refuses what cannot work in a pod.
func (m *gatewayManifest) check(server address.Address) error {
	u, err := url.Parse(server.URL)
	own := server.Socket != "" || server.SSH != "" || err != nil
	if !own {
		ip := net.ParseIP(u.Hostname())
		own = u.Hostname() == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
	}
	switch {
	case own:
		return fault.New(fault.Invalid, "a gateway in a cluster cannot reach the server at %s: that address has a meaning on this machine alone", server).
			Advise("put a proxy with TLS before the server's listen.tcp, and name it with --server https://HOST. A server in the cluster has a gateway of its own: gateway.listen \":8080\" in its cox.yaml, and a Service for it (docs/reference/gateway.md)")
	case u.Scheme != "https":
		return fault.New(fault.Invalid, "the gateway's token would cross the network unencrypted to %s", server).
			Advise("put a proxy with TLS before the server, and name it with --server https://HOST")
	case !dnsLabel.MatchString(m.Namespace):
		return fault.New(fault.Invalid, "--namespace %s is no name of a namespace: lower-case letters, digits and -, 63 at most", m.Namespace).Advise("--namespace coxswain")
	case !imageName.MatchString(m.Image):
		return fault.New(fault.Invalid, "--image %s is no name of an image", m.Image).Advise("--image coxswain.sh/cox:latest")
	case m.Type != "ClusterIP" && m.Type != "NodePort" && m.Type != "LoadBalancer":
		return fault.New(fault.Invalid, "--type %s is no type of a Service: ClusterIP, NodePort, LoadBalancer", m.Type).Advise("--type LoadBalancer gives it an address outside of the cluster")
	case m.Replicas < 1 || m.Replicas > 100:
		return fault.New(fault.Invalid, "--replicas %d: from 1 to 100", m.Replicas).Advise("leave it out for one")
	}
	m.Server = server.URL
	return nil
}

// readAuthority reads the authority's certificates.
func (m *gatewayManifest) readAuthority(file string) error {
	if file == "" {
		return fault.New(fault.Invalid, "whose certificate does %s have? The image of cox knows no authorities", m.Server).
			Advise("--ca FILE names the authority's certificate; for one that all systems know: --ca /etc/ssl/certs/ca-certificates.crt")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fault.New(fault.Invalid, "--ca: %w", err).Advise("name a PEM file that you may read")
	}
	rest := text
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" { // such as a private key, which has no place in a ConfigMap
			return fault.New(fault.Invalid, "--ca %s has a block %q: only certificates belong into it", file, block.Type).Advise("name a file with the authority's certificate alone")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fault.New(fault.Invalid, "--ca %s: %w", file, err).Advise("name the authority's certificate as PEM")
		}
		m.Authority += string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	switch {
	case m.Authority == "":
		return fault.New(fault.Invalid, "--ca %s has no certificate in PEM form", file).Advise("name the authority's certificate as PEM")
	case len(m.Authority) > authorityBytes:
		return fault.New(fault.Invalid, "--ca %s: the certificates are %d KiB, and 512 KiB fit into a ConfigMap", file, len(m.Authority)>>10).Advise("name the one authority that signed the server's certificate")
	}
	return nil
}
