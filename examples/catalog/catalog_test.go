package catalog_test

import (
	"strings"
	"testing"

	"github.com/seed54173720/writ/examples/catalog"
	"github.com/seed54173720/writ/pkg/command"
	"github.com/seed54173720/writ/pkg/kernel"
	"github.com/seed54173720/writ/pkg/kernel/kerneltest"
	"github.com/seed54173720/writ/pkg/keys"
)

// story begins with two named brands and two named categories.
func story(t *testing.T) *kerneltest.Test {
	return kerneltest.For(t, catalog.Context()).
		Given("catalog.brand.create", "1", catalog.CreateBrand{Name: "Acme"}).
		Given("catalog.brand.create", "2", catalog.CreateBrand{Name: "Bolt"}).
		Given("catalog.category.create", "1", catalog.CreateCategory{Name: "Tools"}).
		Given("catalog.category.create", "2", catalog.CreateCategory{Name: "Toys"})
}

func TestNamesAreUniqueHoweverTheyAreSpelled(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.brand.create", "3", catalog.CreateBrand{Name: " ACME "}).ThenRejected(catalog.CodeNameTaken).
		When("catalog.brand.rename", "2", catalog.RenameBrand{Name: "acme"}).ThenRejected(catalog.CodeNameTaken).
		When("catalog.category.create", "3", catalog.CreateCategory{Name: "TOOLS"}).ThenRejected(catalog.CodeNameTaken).
		When("catalog.category.rename", "2", catalog.RenameCategory{Name: "tools "}).ThenRejected(catalog.CodeNameTaken)
}

func TestABrandAndACategoryMayHaveTheSameName(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.category.create", "3", catalog.CreateCategory{Name: "Acme"}).Then(catalog.CategoryCreated{Name: "Acme"})
}

func TestTenantsDoNotShareNames(t *testing.T) {
	t.Parallel()
	c, err := command.New("catalog.brand.create", "test").Tenant("other").Subject("1").JSON(catalog.CreateBrand{Name: "Acme"}).Build()
	if err != nil {
		t.Fatal(err)
	}
	story(t).WhenSent(c).Then(catalog.BrandCreated{Name: "Acme"})
}

func TestANewSpellingIsARenameThatKeepsTheName(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "ACME"}).Then(catalog.BrandRenamed{Name: "ACME"}).
		When("catalog.brand.rename", "2", catalog.RenameBrand{Name: "Acme"}).ThenRejected(catalog.CodeNameTaken).
		When("catalog.category.rename", "1", catalog.RenameCategory{Name: "TOOLS"}).Then(catalog.CategoryRenamed{Name: "TOOLS"}).
		When("catalog.category.rename", "2", catalog.RenameCategory{Name: "tools"}).ThenRejected(catalog.CodeNameTaken)
}

func TestTheVerySameNameIsNothingToDo(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Acme"}).ThenNothing().
		When("catalog.category.rename", "1", catalog.RenameCategory{Name: "Tools"}).ThenNothing()
}

func TestARenameGivesTheOldNameUp(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Apex"}).Then(catalog.BrandRenamed{Name: "Apex"}).
		When("catalog.brand.rename", "2", catalog.RenameBrand{Name: "Acme"}).Then(catalog.BrandRenamed{Name: "Acme"}).
		When("catalog.category.rename", "1", catalog.RenameCategory{Name: "Gear"}).Then(catalog.CategoryRenamed{Name: "Gear"}).
		When("catalog.category.rename", "2", catalog.RenameCategory{Name: "Tools"}).Then(catalog.CategoryRenamed{Name: "Tools"})
}

func TestAReleasedNameIsFree(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.brand.release-name", "1", nil).Then(catalog.BrandNameReleased{}).
		When("catalog.brand.release-name", "1", nil).ThenNothing().
		When("catalog.brand.rename", "2", catalog.RenameBrand{Name: "Acme"}).Then(catalog.BrandRenamed{Name: "Acme"}).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Acme"}).ThenRejected(catalog.CodeNameTaken).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Bolt"}).Then(catalog.BrandRenamed{Name: "Bolt"})
}

func TestStockNeverGoesBelowZeroNorAboveItsBound(t *testing.T) {
	t.Parallel()
	product := catalog.CreateProduct{Name: "Hammer", Brand: "1", Category: "1", Price: "12.50", Stock: 3}
	kerneltest.For(t, catalog.Context()).
		When("catalog.product.create", "1", product).Then(catalog.ProductCreated(product)).
		When("catalog.product.take-stock", "1", catalog.TakeStock{Quantity: 4}).ThenRejected(catalog.CodeOutOfStock).
		When("catalog.product.take-stock", "1", catalog.TakeStock{Quantity: 3}).Then(catalog.StockTaken{Quantity: 3}).
		When("catalog.product.take-stock", "1", catalog.TakeStock{Quantity: 1}).ThenRejected(catalog.CodeOutOfStock).
		When("catalog.product.add-stock", "1", catalog.AddStock{Quantity: 2}).Then(catalog.StockAdded{Quantity: 2}).
		When("catalog.product.take-stock", "1", catalog.TakeStock{Quantity: 2}).Then(catalog.StockTaken{Quantity: 2}).
		Given("catalog.product.create", "2", catalog.CreateProduct{Name: "Nail", Price: "0", Stock: catalog.MaxStock - 1}).
		When("catalog.product.add-stock", "2", catalog.AddStock{Quantity: 2}).ThenRejected(catalog.CodeTooMuchStock).
		When("catalog.product.add-stock", "2", catalog.AddStock{Quantity: 1}).Then(catalog.StockAdded{Quantity: 1})
}

func TestTheSameAmountIsNoNewPrice(t *testing.T) {
	t.Parallel()
	kerneltest.For(t, catalog.Context()).
		Given("catalog.product.create", "1", catalog.CreateProduct{Name: "Hammer", Price: "12.50"}).
		When("catalog.product.change-price", "1", catalog.ChangePrice{Price: "12.50"}).ThenNothing().
		When("catalog.product.change-price", "1", catalog.ChangePrice{Price: "12.5"}).ThenNothing().
		When("catalog.product.change-price", "1", []byte(`{"price": 12.5}`)).ThenNothing().
		When("catalog.product.change-price", "1", []byte(`{"price": 100.10}`)).Then(catalog.PriceChanged{Price: "100.10"}).
		When("catalog.product.change-price", "1", catalog.ChangePrice{Price: "100"}).Then(catalog.PriceChanged{Price: "100"}).
		When("catalog.product.change-price", "1", catalog.ChangePrice{Price: "10"}).Then(catalog.PriceChanged{Price: "10"})
}

func TestBadBodiesAreRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, typ, body string
		want            command.Code
	}{
		{"no name", "brand.create", `{}`, catalog.CodeBlankName},
		{"spaces only", "brand.create", `{"name":" \u00a0 "}`, catalog.CodeBlankName},
		{"blank rename", "brand.rename", `{"name":""}`, catalog.CodeBlankName},
		{"blank category", "category.create", `{"name":" "}`, catalog.CodeBlankName},
		{"blank category rename", "category.rename", `{"name":" "}`, catalog.CodeBlankName},
		{"blank product", "product.create", `{"name":"","price":"1","stock":0}`, catalog.CodeBlankName},
		{"name too long", "brand.create", `{"name":"` + strings.Repeat("x", 501) + `"}`, command.CodeInvalidBody},
		{"unknown member", "brand.create", `{"name":"x","Name":"y"}`, command.CodeInvalidBody},
		{"negative stock", "product.create", `{"name":"x","price":"1","stock":-1}`, command.CodeInvalidBody},
		{"no price", "product.create", `{"name":"x","stock":1}`, catalog.CodeBadPrice},
		{"negative price", "product.change-price", `{"price":"-1"}`, catalog.CodeBadPrice},
		{"three places", "product.change-price", `{"price":"1.005"}`, catalog.CodeBadPrice},
		{"three places as a number", "product.change-price", `{"price":1.005}`, catalog.CodeBadPrice},
		{"an exponent", "product.change-price", `{"price":1e2}`, catalog.CodeBadPrice},
		{"no amount", "product.change-price", `{"price":"cheap"}`, catalog.CodeBadPrice},
		{"price is null", "product.change-price", `{"price":null}`, command.CodeInvalidBody},
		{"price is an object", "product.change-price", `{"price":{}}`, command.CodeInvalidBody},
		{"nothing added", "product.add-stock", `{"quantity":0}`, command.CodeInvalidBody},
		{"nothing taken", "product.take-stock", `{"quantity":-1}`, command.CodeInvalidBody},
		{"too much at once", "product.add-stock", `{"quantity":1000000001}`, command.CodeInvalidBody},
		{"a fraction", "product.add-stock", `{"quantity":1.5}`, command.CodeInvalidBody},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			kerneltest.For(t, catalog.Context()).When("catalog."+row.typ, "1", []byte(row.body)).ThenRejected(row.want)
		})
	}
}

func TestWhatDoesNotExistIsNotFoundAndWhatExistsIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.brand.create", "1", catalog.CreateBrand{Name: "Other"}).ThenRejected(command.CodeAlreadyExists).
		When("catalog.brand.rename", "9", catalog.RenameBrand{Name: "Other"}).ThenRejected(command.CodeNotFound).
		When("catalog.product.take-stock", "9", catalog.TakeStock{Quantity: 1}).ThenRejected(command.CodeNotFound)
}

func TestEveryNameOfTheContextIsRegistered(t *testing.T) {
	t.Parallel()
	c := catalog.Context()
	for _, name := range []string{
		"brand.create", "brand.rename", "brand.release-name", "category.create", "category.rename",
		"product.create", "product.change-price", "product.add-stock", "product.take-stock",
	} {
		info, ok := c.CommandType("catalog." + name)
		if creates := strings.HasSuffix(name, ".create"); !ok || info.Creates != creates {
			t.Errorf("command type catalog.%s: registered %v, creates %v; want true and %v", name, ok, info.Creates, creates)
		}
	}
}

func TestALongNameIsAKey(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("x", 500)
	if len(name) > keys.MaxName {
		t.Fatalf("a name of %d bytes is no key", len(name))
	}
	kerneltest.For(t, catalog.Context()).
		When("catalog.brand.create", "1", catalog.CreateBrand{Name: name}).Then(catalog.BrandCreated{Name: name})
}

func TestNameThatFoldsToMuchMoreThanAKeyHoldsIsTakenOnce(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\ufdfa", 160) // eleven times as long when folded
	story(t).Given("catalog.brand.create", "3", catalog.CreateBrand{Name: long}).
		When("catalog.brand.create", "4", catalog.CreateBrand{Name: long}).
		ThenRejected(catalog.CodeNameTaken)
}

func TestADeletedBrandKeepsItsNameAndARecoveredOneStillHasIt(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.brand.delete", "1", nil).Then(kernel.Deleted{}).
		When("catalog.brand.create", "3", catalog.CreateBrand{Name: "acme"}).ThenRejected(catalog.CodeNameTaken).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Apex"}).ThenRejected(command.CodeDeleted).
		When("catalog.brand.create", "1", catalog.CreateBrand{Name: "Apex"}).ThenRejected(command.CodeDeleted).
		When("catalog.brand.recover", "1", nil).Then(kernel.Recovered{}).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Acme"}).ThenNothing().
		When("catalog.brand.create", "3", catalog.CreateBrand{Name: "acme"}).ThenRejected(catalog.CodeNameTaken)
}

func TestANameThatIsReleasedBeforeTheDeletionIsFree(t *testing.T) {
	t.Parallel()
	story(t).
		When("catalog.brand.release-name", "1", nil).Then(catalog.BrandNameReleased{}).
		When("catalog.brand.delete", "1", nil).Then(kernel.Deleted{}).
		When("catalog.brand.create", "3", catalog.CreateBrand{Name: "acme"}).Then(catalog.BrandCreated{Name: "acme"}).
		When("catalog.brand.recover", "1", nil).Then(kernel.Recovered{}).
		When("catalog.brand.rename", "1", catalog.RenameBrand{Name: "Acme"}).ThenRejected(catalog.CodeNameTaken)
}

func TestEveryAggregateCanBeDeletedAndRecovered(t *testing.T) {
	t.Parallel()
	s := story(t).Given("catalog.product.create", "1", catalog.CreateProduct{Name: "Lamp", Price: "1"})
	for _, aggregate := range []string{"brand", "category", "product"} {
		s.When("catalog."+aggregate+".delete", "1", nil).Then(kernel.Deleted{}).
			When("catalog."+aggregate+".delete", "1", nil).ThenNothing().
			When("catalog."+aggregate+".recover", "1", nil).Then(kernel.Recovered{}).
			When("catalog."+aggregate+".recover", "1", nil).ThenNothing().
			When("catalog."+aggregate+".delete", "none", nil).ThenRejected(command.CodeNotFound)
	}
}
