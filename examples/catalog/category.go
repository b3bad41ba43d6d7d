package catalog

import (
	"context"

	"github.com/seed54173720/writ/pkg/kernel"
)

// Category is the state of a category. Its name is unique among categories; a brand may have the same.
type Category struct {
	Name string `json:"name"`
}

// The bodies of a category's commands.
type (
	CreateCategory struct {
		Name string `json:"name"`
	}
	RenameCategory struct {
		Name string `json:"name"`
	}
)

// Validate implements kernel.Validator.
func (c CreateCategory) Validate() error { return checkName(c.Name) }

// Validate implements kernel.Validator.
func (c RenameCategory) Validate() error { return checkName(c.Name) }

// A category's events.
type (
	CategoryCreated struct {
		Name string `json:"name"`
	}
	CategoryRenamed struct {
		Name string `json:"name"`
	}
)

const categoryName = "category-name"

func registerCategory(c *kernel.Context) {
	category := kernel.Add[Category](c, "category")

	kernel.On(category, "created", func(_ Category, e CategoryCreated) Category { return Category{Name: e.Name} })
	kernel.On(category, "renamed", func(g Category, e CategoryRenamed) Category { g.Name = e.Name; return g })

	kernel.Handle(category, "create", kernel.Creates, createCategory)
	kernel.Handle(category, "rename", kernel.Existing, renameCategory)
}

func createCategory(_ context.Context, s *kernel.Scope[Category], c CreateCategory) (kernel.Decision, error) {
	if !s.Reserve(categoryName, nameKey(c.Name)) {
		return nameTaken("category", c.Name), nil
	}
	return kernel.Events(CategoryCreated(c)), nil
}

func renameCategory(_ context.Context, s *kernel.Scope[Category], c RenameCategory) (kernel.Decision, error) {
	old := s.State().Name
	if c.Name == old {
		return kernel.Nothing(), nil
	}
	if !s.Reserve(categoryName, nameKey(c.Name)) {
		return nameTaken("category", c.Name), nil
	}
	s.Release(categoryName, nameKey(old))
	return kernel.Events(CategoryRenamed(c)), nil
}
