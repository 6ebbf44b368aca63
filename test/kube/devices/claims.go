package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// claimed are devices that claims have been given. Like a vendor's driver it does not prepare
// one for two claims at once.
type claimed struct {
	dra.UnimplementedDRAPluginServer
	registration.UnimplementedRegistrationServer
	*stock
	api    *http.Client
	server string

	mu       sync.Mutex
	prepared map[string]string // device → the claim's UID
}

// claims serves the kubelet as a driver of dynamic resource allocation (DRA). It publishes
// nothing: the test does.
func claims(s *stock) error {
	now, _ := s.get()
	pair, err := tls.X509KeyPair([]byte(now.API.Cert), []byte(now.API.Key))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(now.API.CA))
	c := &claimed{stock: s, server: now.API.Server, prepared: map[string]string{}}
	c.api = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}}}
	dir := filepath.Join("/var/lib/kubelet/plugins", now.Resource)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := listen(filepath.Join(dir, "dra.sock"), func(g *grpc.Server) { dra.RegisterDRAPluginServer(g, c) }); err != nil {
		return err
	}
	if err := listen(filepath.Join("/var/lib/kubelet/plugins_registry", now.Resource+".sock"), func(g *grpc.Server) { registration.RegisterRegistrationServer(g, c) }); err != nil {
		return err
	}
	select {}
}

func (c *claimed) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	now, _ := c.get()
	return &registration.PluginInfo{Type: registration.DRAPlugin, Name: now.Resource, Endpoint: filepath.Join("/var/lib/kubelet/plugins", now.Resource, "dra.sock"), SupportedVersions: []string{dra.DRAPluginService}}, nil
}

func (c *claimed) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if s.PluginRegistered {
		say("registered")
	} else {
		say("not registered: %s", s.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

// result is a device that a claim was given.
type result struct{ Request, Driver, Pool, Device string }

// given is what the API server has of a claim.
func (c *claimed) given(ctx context.Context, of *dra.Claim) ([]result, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+"/apis/resource.k8s.io/v1/namespaces/"+of.Namespace+"/resourceclaims/"+of.Name, nil)
	if err != nil {
		return nil, err
	}
	a, err := c.api.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	var there struct {
		Metadata struct{ UID string }
		Status   struct {
			Allocation struct {
				Devices struct{ Results []result }
			}
		}
	}
	if err := json.NewDecoder(a.Body).Decode(&there); err != nil || there.Metadata.UID != of.Uid {
		return nil, fmt.Errorf("claim %s is not the one (%s): %w", of.Name, a.Status, err)
	}
	return there.Status.Allocation.Devices.Results, nil
}

// NodePrepareResources takes devices for claims.
func (c *claimed) NodePrepareResources(ctx context.Context, r *dra.NodePrepareResourcesRequest) (*dra.NodePrepareResourcesResponse, error) {
	out := &dra.NodePrepareResourcesResponse{Claims: map[string]*dra.NodePrepareResourceResponse{}}
	for _, of := range r.Claims {
		devices, err := c.prepare(ctx, of)
		one := &dra.NodePrepareResourceResponse{Devices: devices}
		if err != nil {
			say("not prepared %s: %v", of.Name, err)
			one = &dra.NodePrepareResourceResponse{Error: err.Error()}
		}
		out.Claims[of.Uid] = one
	}
	return out, nil
}

func (c *claimed) prepare(ctx context.Context, of *dra.Claim) (out []*dra.Device, err error) {
	all, err := c.given(ctx, of)
	if err != nil {
		return nil, err
	}
	now, _ := c.get()
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, x := range all {
		if x.Driver != now.Resource {
			continue
		}
		i := slices.IndexFunc(now.Devices, func(d Device) bool { return d.ID == x.Device })
		switch by := c.prepared[x.Device]; {
		case i < 0:
			return nil, fmt.Errorf("there is no device %s", x.Device)
		case now.Devices[i].Ill:
			return nil, fmt.Errorf("device %s has fallen off the bus", x.Device)
		case by != "" && by != of.Uid:
			return nil, fmt.Errorf("device %s is prepared for another claim (%s)", x.Device, by)
		}
		names = append(names, x.Device)
		out = append(out, &dra.Device{RequestNames: []string{x.Request}, PoolName: x.Pool, DeviceName: x.Device})
	}
	for _, n := range names {
		c.prepared[n] = of.Uid
	}
	say("prepared %s %s", of.Name, strings.Join(sorted(names), ","))
	return out, nil
}

// NodeUnprepareResources gives devices back.
func (c *claimed) NodeUnprepareResources(_ context.Context, r *dra.NodeUnprepareResourcesRequest) (*dra.NodeUnprepareResourcesResponse, error) {
	out := &dra.NodeUnprepareResourcesResponse{Claims: map[string]*dra.NodeUnprepareResourceResponse{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.Claims {
		for d, by := range c.prepared {
			if by == of.Uid {
				delete(c.prepared, d)
			}
		}
		say("unprepared %s", of.Name)
		out.Claims[of.Uid] = &dra.NodeUnprepareResourceResponse{}
	}
	return out, nil
}
