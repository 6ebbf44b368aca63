package work

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coxswain-sched/coxswain/model/job"
	"github.com/coxswain-sched/coxswain/model/podspec"
)

// references are the names of the objects that a pod uses.
type references struct {
	configs map[string]bool
	secrets map[string]map[string]bool // the keys that are named; nil value: all of them
}

func (r *references) addSecret(name string, keys ...string) {
	if name == "" {
		return
	}
	if r.secrets[name] == nil {
		r.secrets[name] = map[string]bool{}
	}
	for _, k := range keys {
		r.secrets[name][k] = true
	}
}

// podReferences lists the ConfigMaps and Secrets that a pod's containers and volumes name.
func podReferences(p *podspec.PodSpec) *references {
	r := &references{configs: map[string]bool{}, secrets: map[string]map[string]bool{}}
	for _, c := range slices.Concat(p.InitContainers, p.Containers) {
		for _, e := range c.Env {
			switch from := e.From; {
			case from == nil:
			case from.ConfigMap != nil:
				r.configs[from.ConfigMap.Name] = true
			case from.Secret != nil:
				r.addSecret(from.Secret.Name, from.Secret.Key)
			}
		}
		for _, e := range c.EnvFrom {
			if e.ConfigMap != nil {
				r.configs[e.ConfigMap.Name] = true
			}
			if e.Secret != nil {
				r.addSecret(e.Secret.Name)
			}
		}
	}
	keysOf := func(items []podspec.KeyPath) (keys []string) {
		for _, i := range items {
			keys = append(keys, i.Key)
		}
		return keys
	}
	for _, v := range p.Volumes {
		if v.ConfigMap != nil {
			r.configs[v.ConfigMap.Name] = true
		}
		if v.Secret != nil {
			r.addSecret(v.Secret.Name, keysOf(v.Secret.Items)...)
		}
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				r.configs[s.ConfigMap.Name] = true
			}
			if s.Secret != nil {
				r.addSecret(s.Secret.Name, keysOf(s.Secret.Items)...)
			}
		}
	}
	return r
}

// nameObjects takes the ConfigMaps and Secrets of the file that a pod names into the set. What is not in
// the file is the cluster's own, or the server's store's.
func (b *builder) nameObjects(p *podspec.PodTemplate, path string) error {
	refs := podReferences(&p.Spec)
	set := b.w.Set
	for name := range refs.secrets {
		b.w.pulls[name] = false
	}
	for _, s := range p.Spec.ImagePullSecrets {
		if b.f.findDocument("Secret", s.Name) < 0 { // the cluster's own
			continue
		}
		if _, is := b.w.pulls[s.Name]; !is {
			b.w.pulls[s.Name] = true
		}
		refs.addSecret(s.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(refs.configs)) {
		i := b.f.findDocument("ConfigMap", name)
		if i < 0 || slices.ContainsFunc(set.ConfigMaps, func(c podspec.ConfigMap) bool { return c.Name == name }) {
			continue
		}
		b.useDocument(i)
		var doc struct {
			Data       map[string]string `json:"data"`
			BinaryData map[string][]byte `json:"binaryData"`
		}
		if err := b.f.docs[i].decode(&doc); err != nil {
			return err
		}
		set.ConfigMaps = append(set.ConfigMaps, podspec.ConfigMap{Name: name, Data: doc.Data, Binary: doc.BinaryData})
	}
	for _, name := range slices.Sorted(maps.Keys(refs.secrets)) {
		if k := slices.IndexFunc(set.Secrets, func(s podspec.Secret) bool { return s.Name == name }); k >= 0 {
			if s := &set.Secrets[k]; s.Foreign { // another role names other keys of it
				s.Keys = slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.Keys, slices.Collect(maps.Keys(refs.secrets[name]))))))
			}
			continue
		}
		i := b.f.findDocument("Secret", name)
		if i < 0 {
			set.Secrets = append(set.Secrets, podspec.Secret{Name: name, Foreign: true, Keys: slices.Sorted(maps.Keys(refs.secrets[name]))})
			continue
		}
		b.useDocument(i)
		if err := b.addSecret(&b.f.docs[i], name); err != nil {
			return err
		}
	}
	return nil
}

// addSecret takes a Secret of the file: its values go to the server's store.
func (b *builder) addSecret(d *Document, name string) error {
	var doc struct {
		Data       map[string]string `json:"data"`
		StringData map[string]string `json:"stringData"`
	}
	if err := d.decode(&doc); err != nil {
		return err
	}
	values := map[string][]byte{}
	for key, text := range doc.Data {
		value, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
		if err != nil {
			return d.Fail("data."+key, "it is not base64", "write the value itself into stringData, or encode it: printf %s VALUE | base64")
		}
		values[key] = value
	}
	for key, text := range doc.StringData {
		values[key] = []byte(text)
	}
	if b.w.Secrets == nil {
		b.w.Secrets = map[string][]byte{}
	}
	keys := slices.Sorted(maps.Keys(values))
	for _, key := range keys {
		store := podspec.StoreName(name, key)
		if err := job.CheckSecretName(store); err != nil {
			return d.Fail("data."+key, fmt.Sprintf("the key %q of Secret %s cannot be kept: %v", key, name, err), "rename the key")
		}
		if before, twice := b.stored[store]; twice {
			message := fmt.Sprintf("the key %s of Secret %s and the key %s of Secret %s are both kept as %s", key, name, before.key, before.secret, store)
			if before.secret == name {
				message = fmt.Sprintf("two keys of Secret %s differ in upper and lower case alone", name)
			}
			return d.Fail("data."+key, message, "rename one of them")
		}
		b.stored[store] = secretKey{name, key}
		b.w.Secrets[store] = values[key]
		b.w.Job.Secrets = append(b.w.Job.Secrets, job.Secret{Name: store, File: store})
	}
	b.w.Set.Secrets = append(b.w.Set.Secrets, podspec.Secret{Name: name, Keys: keys})
	return nil
}
