package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// counted are devices that the kubelet chooses among.
type counted struct {
	api.UnimplementedDevicePluginServer
	*stock
}

// plugin serves the kubelet, each one that comes: a kubelet that starts empties the folder.
func plugin(s *stock) error {
	const name = "lab-devices.sock"
	at := filepath.Join(api.DevicePluginPath, name)
	was := uint64(0)
	for {
		now := identity(api.KubeletSocket)
		if now == 0 || now == was {
			time.Sleep(pause)
			continue
		}
		if err := listen(at, func(g *grpc.Server) { api.RegisterDevicePluginServer(g, &counted{stock: s}) }); err != nil {
			return err
		}
		if err := register(s, name); err != nil {
			say("not registered: %v", err) // it is just starting
			time.Sleep(pause)
			continue
		}
		was = now
		say("registered")
	}
}

func register(s *stock, name string) error {
	c, err := dial(api.KubeletSocket)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	now, _ := s.get()
	_, err = api.NewRegistrationClient(c).Register(ctx, &api.RegisterRequest{Version: api.Version, Endpoint: name, ResourceName: now.Resource, Options: &api.DevicePluginOptions{}})
	return err
}

func (c *counted) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch tells of every device, and again when one falls ill or is well again.
func (c *counted) ListAndWatch(_ *api.Empty, to grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	for {
		now, changed := c.get()
		var all api.ListAndWatchResponse
		for _, d := range now.Devices {
			health := api.Healthy
			if d.Ill {
				health = api.Unhealthy
			}
			all.Devices = append(all.Devices, &api.Device{ID: d.ID, Health: health})
		}
		if err := to.Send(&all); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-to.Context().Done():
			return nil
		}
	}
}

// Allocate tells a container its devices as NVIDIA's plugin does.
func (c *counted) Allocate(_ context.Context, r *api.AllocateRequest) (*api.AllocateResponse, error) {
	now, _ := c.get()
	var out api.AllocateResponse
	for _, q := range r.ContainerRequests {
		for _, id := range q.DevicesIds {
			if !slices.ContainsFunc(now.Devices, func(d Device) bool { return d.ID == id && !d.Ill }) {
				return nil, fmt.Errorf("%s is no device, or not well", id)
			}
		}
		list := strings.Join(sorted(q.DevicesIds), ",")
		say("allocated %s", list)
		out.ContainerResponses = append(out.ContainerResponses, &api.ContainerAllocateResponse{Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": list}})
	}
	return &out, nil
}
