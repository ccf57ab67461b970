use std::time::Duration;

use axum::{
    extract::{Path, Query, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use bson::{Document, RawDocumentBuf, doc, oid::ObjectId};
use serde::Deserialize;
use slate_core::ReturnDocument;

use crate::{
    Shop,
    failure::Failure,
    json::{Json, Stored, parse},
    lines::Lines,
};

/// A search fails after this time, which limits the load by a slow filter.
const SEARCH_DEADLINE: Duration = Duration::from_secs(10);

/// `POST /products`
pub(crate) async fn create(State(shop): State<Shop>, Json(product): Json) -> Result<Response, Failure> {
    refuse_own_fields(&product)?;
    let id = ObjectId::new();
    let mut stored = doc! { "_id": id, "version": 1_i64 };
    stored.extend(product);
    let stored = RawDocumentBuf::try_from(&stored).map_err(|error| Failure::Invalid(error.to_string()))?;
    shop.products().insert_one(&stored).await?;
    Ok((StatusCode::CREATED, [(header::LOCATION, format!("/products/{id}"))], Stored(stored)).into_response())
}

/// The parameters of a search. `filter`, `sort` and `fields` are documents in extended JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    filter: Option<String>,
    sort: Option<String>,
    fields: Option<String>,
    limit: Option<u64>,
}

/// `GET /products?filter={"price":{"$lt":10}}&sort={"price":1}&fields={"sku":1}&limit=10`
pub(crate) async fn search(State(shop): State<Shop>, Query(search): Query<Search>) -> Result<Lines, Failure> {
    let document = |json: Option<String>| json.map_or(Ok(doc! {}), |json| parse(json.as_bytes()));
    let mut find = shop.products().find(document(search.filter)?);
    if let Some(limit) = search.limit {
        find = find.limit(limit);
    }
    let found = find.sort(document(search.sort)?).projection(document(search.fields)?).deadline(SEARCH_DEADLINE);
    Ok(Lines(found.await?))
}

/// `GET /products/{id}`
pub(crate) async fn read(State(shop): State<Shop>, Path(id): Path<String>) -> Result<Stored, Failure> {
    shop.products().find_by_id(parse_id(&id)?).await?.map(Stored).ok_or(Failure::NotFound)
}

/// `PATCH /products/{id}`: sets the fields of the body. Two clients that read the same version cannot both change it.
pub(crate) async fn change(
    State(shop): State<Shop>,
    Path(id): Path<String>,
    headers: HeaderMap,
    Json(fields): Json,
) -> Result<Stored, Failure> {
    refuse_own_fields(&fields)?;
    let (id, version) = (parse_id(&id)?, expected_version(&headers)?);
    let products = shop.products();
    let update = doc! { "$set": fields, "$inc": { "version": 1_i64 } };
    let changed = products.find_one_and_update(doc! { "_id": id, "version": version }, update);
    match changed.return_document(ReturnDocument::After).await? {
        Some(product) => Ok(Stored(product)),
        None => Err(missing_or_changed(&shop, id).await?),
    }
}

/// `DELETE /products/{id}`
pub(crate) async fn remove(
    State(shop): State<Shop>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<StatusCode, Failure> {
    let (id, version) = (parse_id(&id)?, expected_version(&headers)?);
    match shop.products().delete_one(doc! { "_id": id, "version": version }).await? {
        0 => Err(missing_or_changed(&shop, id).await?),
        _ => Ok(StatusCode::NO_CONTENT),
    }
}

/// Returns the failure after no product had this id and the expected version.
async fn missing_or_changed(shop: &Shop, id: ObjectId) -> slate_core::Result<Failure> {
    Ok(if shop.products().find_by_id(id).await?.is_some() { Failure::Changed } else { Failure::NotFound })
}

fn parse_id(id: &str) -> Result<ObjectId, Failure> {
    ObjectId::parse_str(id).map_err(|_| Failure::NotFound)
}

/// Returns the version in `If-Match`, quoted as in `ETag`.
fn expected_version(headers: &HeaderMap) -> Result<i64, Failure> {
    let value = headers.get(header::IF_MATCH).ok_or(Failure::VersionRequired)?;
    let version = value.to_str().ok().and_then(|value| value.trim_matches('"').parse().ok());
    version.ok_or_else(|| Failure::Invalid("If-Match: expected the ETag of the product".into()))
}

fn refuse_own_fields(fields: &Document) -> Result<(), Failure> {
    let own = |field: &&str| fields.contains_key(*field);
    match ["_id", "version"].iter().find(|field| own(field)) {
        Some(field) => Err(Failure::Invalid(format!("{field} is set by the service"))),
        None => Ok(()),
    }
}
