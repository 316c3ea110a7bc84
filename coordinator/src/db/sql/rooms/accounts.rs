//! Users, their tokens, invitations and workers.

use async_trait::async_trait;
use jiff::Timestamp;
use rookery_common::ids::{RunName, UserId};
use rookery_common::protocol::people::{ActiveWorkers, ContributorDetail, OperatorAct};

use crate::db::error::Result;
use crate::db::model::{
    ContributorFilter, Contributors, InvitationDraft, InvitationInfo, LogFilter, Principal, Pulse,
    Standing, TokenCounts, TokenDraft, TokenInfo, UserDraft, UserInfo,
};
use crate::db::rooms::Accounts;
use crate::db::sql::doors::{read, write};
use crate::db::sql::{
    SqlDatabase, activity, contributors, forgotten, invitations, operator_log, tokens, users,
};
use crate::tokens::TokenHash;

#[async_trait]
impl Accounts for SqlDatabase {
    async fn create_user(&self, user: UserDraft, actor: &str, now: Timestamp) -> Result<UserId> {
        let actor = actor.to_owned();
        write!(self, users::create(user, actor, now))
    }

    async fn add_token(
        &self,
        user: &str,
        token: TokenDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (user, actor) = (user.to_owned(), actor.to_owned());
        write!(self, tokens::add(user, token, actor, now))
    }

    async fn tokens(&self, user: &str) -> Result<Vec<TokenInfo>> {
        read!(self.readers, tokens::of_name(user))
    }

    async fn tokens_of(&self, user: UserId) -> Result<Vec<TokenInfo>> {
        read!(self.readers, tokens::of_user(user.0))
    }

    async fn token(&self, user: UserId, token: i64) -> Result<Option<TokenInfo>> {
        read!(self.readers, tokens::one(user, token))
    }

    async fn token_counts(&self, user: UserId, since: Timestamp) -> Result<TokenCounts> {
        read!(self.readers, tokens::counts(user, since))
    }

    async fn issue_token(&self, by: &Principal, token: TokenDraft, now: Timestamp) -> Result<i64> {
        let by = by.clone();
        write!(self, tokens::issue(by, token, now))
    }

    async fn change_token(
        &self,
        by: &Principal,
        old: i64,
        new: TokenDraft,
        now: Timestamp,
    ) -> Result<i64> {
        let by = by.clone();
        let changed = write!(self, tokens::change(by, old, new, now));
        self.principals.forget();
        changed
    }

    async fn rotate_token(
        &self,
        old: i64,
        new: TokenDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64> {
        let actor = actor.to_owned();
        let issued = write!(self, tokens::rotate(old, new, actor, now));
        self.principals.forget();
        issued
    }

    async fn revoke_token(&self, token: i64, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        let revoked = write!(self, tokens::revoke(token, actor, now));
        self.principals.forget();
        revoked
    }

    async fn redeem(
        &self,
        user: UserDraft,
        invitation: TokenHash,
        now: Timestamp,
    ) -> Result<UserId> {
        write!(self, invitations::redeem(user, invitation, now))
    }

    async fn create_invitation(
        &self,
        invitation: InvitationDraft,
        actor: &str,
        now: Timestamp,
    ) -> Result<i64> {
        let actor = actor.to_owned();
        write!(self, invitations::create(invitation, actor, now))
    }

    async fn invitations(&self) -> Result<Vec<InvitationInfo>> {
        read!(self.readers, invitations::all())
    }

    async fn revoke_invitation(&self, invitation: i64, actor: &str, now: Timestamp) -> Result<()> {
        let actor = actor.to_owned();
        write!(self, invitations::revoke(invitation, actor, now))
    }

    async fn operator_log(&self, filter: LogFilter) -> Result<Vec<OperatorAct>> {
        read!(self.readers, operator_log::page(filter.clone()))
    }

    async fn set_standing(
        &self,
        user: &str,
        standing: Standing,
        actor: &str,
        now: Timestamp,
    ) -> Result<()> {
        let (user, actor) = (user.to_owned(), actor.to_owned());
        let set = write!(self, users::set_standing(user, standing, actor, now));
        self.principals.forget();
        set
    }

    async fn rename_user(&self, user: &str, name: &str, actor: &str, now: Timestamp) -> Result<()> {
        let (user, name, actor) = (user.to_owned(), name.to_owned(), actor.to_owned());
        let renamed = write!(self, users::rename(user, name, actor, now));
        self.principals.forget();
        renamed
    }

    async fn delete_user(&self, user: &str, actor: &str, now: Timestamp) -> Result<UserId> {
        let (user, actor) = (user.to_owned(), actor.to_owned());
        let deleted = write!(self, users::delete(user, actor, now));
        self.principals.forget();
        deleted
    }

    async fn principal(&self, token: &TokenHash) -> Result<Option<Principal>> {
        match self.principals.get(token) {
            Some(principal) => Ok(Some(principal)),
            None => self.principal_now(token).await,
        }
    }

    async fn principal_now(&self, token: &TokenHash) -> Result<Option<Principal>> {
        let asked = self.principals.forget_one(token);
        let principal = read!(self.readers, tokens::principal(token))?;
        if let Some(principal) = &principal {
            self.principals.keep(token, principal, asked);
        }
        Ok(principal)
    }

    async fn users(&self) -> Result<Vec<UserInfo>> {
        read!(self.readers, users::list())
    }

    async fn contributors(
        &self,
        filter: ContributorFilter,
        now: Timestamp,
    ) -> Result<Contributors> {
        read!(self.readers, contributors::list(&filter, now))
    }

    async fn contributor(
        &self,
        name: &str,
        run: Option<&RunName>,
        now: Timestamp,
    ) -> Result<ContributorDetail> {
        read!(self.readers, contributors::one(name, run, now))
    }

    async fn pulse(&self, now: Timestamp) -> Result<Pulse> {
        read!(self.readers, activity::pulse(now))
    }

    async fn forget_workers(&self, before: Timestamp) -> Result<u64> {
        write!(self, forgotten::workers(before))
    }

    async fn workers(&self, since: Timestamp, limit: u32) -> Result<ActiveWorkers> {
        read!(self.readers, activity::workers(since, limit))
    }
}
