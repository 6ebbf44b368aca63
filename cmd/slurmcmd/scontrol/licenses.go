package scontrol

import (
	"fmt"
)

// showLicenses prints licences in Slurm's words; name "": all.
func (s *command) showLicenses(name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	v, err := c.JSON("GET", "/v1/licenses", nil)
	if err != nil {
		return err
	}
	list := v.Get("licenses").Items()
	found := false
	for _, l := range list {
		if name != "" && l.Get("name").Text() != name {
			continue
		}
		found = true
		total, used := l.Get("total").Int(), l.Get("used").Int()
		s.writeRecord([]string{
			"LicenseName=" + l.Get("name").Text(),
			fmt.Sprintf("Total=%d Used=%d Free=%d Reserved=0 Remote=no", total, used, max(total-used, 0)),
		})
	}
	switch {
	case len(list) == 0:
		s.Out.WriteString("No licenses configured in Slurm.\n")
	case !found:
		fmt.Fprintf(s.Out, "License %s not found\n", name)
		s.Code = 1
	}
	return nil
}
