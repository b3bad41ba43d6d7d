package catalog

import "github.com/seed54173720/writ/pkg/command"

// Demo yields commands that show each outcome, and what each is about. Its request IDs are always the same: sent again,
// they repeat these requests.
func Demo(yield func(about string, c *command.Command) bool) {
	const source = "demo"
	steps := []struct {
		about, request, typ, subject string
		body                         any
	}{
		{"A brand is created, and reserves its name.", "demo-1", "catalog.brand.create", "acme", CreateBrand{Name: "Acme"}},
		{"Another brand wants the name; spelling makes no difference.", "demo-2", "catalog.brand.create", "acme-too", CreateBrand{Name: " ACME "}},
		{"The brand gets the name that it has.", "demo-3", "catalog.brand.rename", "acme", RenameBrand{Name: "Acme"}},
		{"The first request once more, as after a lost answer.", "demo-1", "catalog.brand.create", "acme", CreateBrand{Name: "Acme"}},
		{"A product is created.", "demo-4", "catalog.product.create", "anvil", CreateProduct{Name: "Anvil", Brand: "acme", Price: "49.90", Stock: 3}},
		{"Two pieces are taken.", "demo-5", "catalog.product.take-stock", "anvil", TakeStock{Quantity: 2}},
		{"Two more are not there.", "demo-6", "catalog.product.take-stock", "anvil", TakeStock{Quantity: 2}},
	}
	for _, s := range steps {
		c, err := command.New(s.typ, source).ID(s.request).Subject(s.subject).JSON(s.body).Build()
		if err != nil {
			panic(err) // they are constants
		}
		if !yield(s.about, c) {
			return
		}
	}
}
