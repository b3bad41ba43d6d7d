package catalog

import (
	"context"

	"github.com/seed54173720/writ/pkg/kernel"
)

// Brand is the state of a brand. Its name is unique among brands, however it is spelled.
type Brand struct {
	Name string `json:"name"` // as it was last spelled; "" once it is released
}

// The bodies of a brand's commands.
type (
	CreateBrand struct {
		Name string `json:"name"`
	}
	RenameBrand struct {
		Name string `json:"name"`
	}
	// ReleaseBrandName lets others have the name. The brand has none until it is renamed.
	ReleaseBrandName struct{}
)

// Validate implements kernel.Validator.
func (c CreateBrand) Validate() error { return checkName(c.Name) }

// Validate implements kernel.Validator.
func (c RenameBrand) Validate() error { return checkName(c.Name) }

// A brand's events.
type (
	BrandCreated struct {
		Name string `json:"name"`
	}
	BrandRenamed struct {
		Name string `json:"name"`
	}
	BrandNameReleased struct{}
)

// brandName is the namespace of the keys that brands reserve. A key is the folded name, so that "Acme" and " ACME "
// are one; another namespace is another set of names.
const brandName = "brand-name"

func registerBrand(c *kernel.Context) {
	brand := kernel.Add[Brand](c, "brand")

	kernel.On(brand, "created", func(_ Brand, e BrandCreated) Brand { return Brand{Name: e.Name} })
	kernel.On(brand, "renamed", func(b Brand, e BrandRenamed) Brand { b.Name = e.Name; return b })
	kernel.On(brand, "name-released", func(b Brand, _ BrandNameReleased) Brand { b.Name = ""; return b })

	kernel.Handle(brand, "create", kernel.Creates, createBrand)
	kernel.Handle(brand, "rename", kernel.Existing, renameBrand)
	kernel.Handle(brand, "release-name", kernel.Existing, releaseBrandName)
}

func createBrand(_ context.Context, s *kernel.Scope[Brand], c CreateBrand) (kernel.Decision, error) {
	if !s.Reserve(brandName, nameKey(c.Name)) {
		return nameTaken("brand", c.Name), nil
	}
	return kernel.Events(BrandCreated(c)), nil
}

func renameBrand(_ context.Context, s *kernel.Scope[Brand], c RenameBrand) (kernel.Decision, error) {
	old := s.State().Name
	if c.Name == old {
		return kernel.Nothing(), nil
	}
	if !s.Reserve(brandName, nameKey(c.Name)) {
		return nameTaken("brand", c.Name), nil
	}
	if old != "" {
		// Where the new name is another spelling of the old one, the key that was just reserved stays.
		s.Release(brandName, nameKey(old))
	}
	return kernel.Events(BrandRenamed(c)), nil
}

func releaseBrandName(_ context.Context, s *kernel.Scope[Brand], _ ReleaseBrandName) (kernel.Decision, error) {
	name := s.State().Name
	if name == "" {
		return kernel.Nothing(), nil
	}
	s.Release(brandName, nameKey(name))
	return kernel.Events(BrandNameReleased{}), nil
}
