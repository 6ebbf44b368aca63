package dra

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// candidate is a device that expressions are asked about.
type candidate struct {
	driver string
	device *resourcev1.Device
}

// attributesIn are the attributes of a domain. A version is no text, in CEL as here.
func (d *candidate) attributesIn(domain string) map[string]any {
	out := map[string]any{}
	for name, v := range d.device.Attributes {
		base, ok := d.nameInDomain(string(name), domain)
		if !ok {
			continue
		}
		switch {
		case v.StringValue != nil:
			out[base] = *v.StringValue
		case v.IntValue != nil:
			out[base] = *v.IntValue
		case v.BoolValue != nil:
			out[base] = *v.BoolValue
		default:
			out[base] = errLacks // it is there, and compares with nothing
		}
	}
	return out
}

func (d *candidate) capacitiesIn(domain string) map[string]any {
	out := map[string]any{}
	for name, v := range d.device.Capacity {
		if base, ok := d.nameInDomain(string(name), domain); ok {
			out[base] = v.Value
		}
	}
	return out
}

// nameInDomain is a name without its domain, if that is the one; names without any are the driver's.
func (d *candidate) nameInDomain(name, domain string) (string, bool) {
	of, base, ok := strings.Cut(name, "/")
	if !ok {
		of, base = d.driver, name
	}
	return base, of == domain
}

// typeExpression is what tells a device from those of another type, in CEL: the attributes by which we
// know its type, and whether it is a part of another. One that lacks an attribute is another.
func typeExpression(c *candidate) string {
	var all []string
	for _, name := range products {
		if a := deviceAttribute(c.device, name); a != nil && valueOrZero(a.StringValue) != "" {
			all = append(all, c.attributeEquals(name, *a.StringValue))
			break
		}
	}
	if profile := firstText(c.device, "profile"); profile != "" {
		all = append(all, c.attributeEquals("profile", profile))
	} else {
		all = append(all, fmt.Sprintf("!('profile' in device.attributes['%s'])", c.driver))
	}
	return strings.Join(all, " && ")
}

// attributeEquals says of an attribute that it is there and has a value.
func (c *candidate) attributeEquals(name, value string) string {
	of := c.driver
	for full := range c.device.Attributes {
		if domain, base, ok := strings.Cut(string(full), "/"); ok && base == name {
			if _, own := c.device.Attributes[resourcev1.QualifiedName(name)]; !own {
				of = domain
			}
		}
	}
	return fmt.Sprintf("'%s' in device.attributes['%s'] && device.attributes['%[2]s'].%[1]s == %[3]q", name, of, value)
}

// deviceAttribute is one of a device, by its name in any domain; nil: it has none of that name.
func deviceAttribute(v *resourcev1.Device, name string) *resourcev1.DeviceAttribute {
	for _, full := range slices.Sorted(maps.Keys(v.Attributes)) {
		if baseName(string(full)) == name {
			a := v.Attributes[full]
			return &a
		}
	}
	return nil
}

// baseName is a name without its domain.
func baseName(full string) string { return full[strings.LastIndexByte(full, '/')+1:] }

// firstText is the first of attributes that is a text or a version; empty: none is.
func firstText(v *resourcev1.Device, names ...string) string {
	for _, n := range names {
		if a := deviceAttribute(v, n); a != nil {
			if s := cmp.Or(valueOrZero(a.StringValue), valueOrZero(a.VersionValue)); s != "" {
				return s
			}
		}
	}
	return ""
}

func valueOrZero[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
